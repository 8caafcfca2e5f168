package gardenlet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// That an approval is used is written to the seed before the first object goes by it, with the objects that it lets go: wherever the process ends, no
// approval lets a second deletion pass. These objects themselves, known by their UIDs, may go until they are gone: a convergence that fails halfway is
// repeated, maybe by another process. The virtual garden need not be reached for any of it.

// use is what an approval was used for.
type use struct {
	// Owner that has the objects, as its record is called.
	Owner string `json:"owner,omitempty"`
	// Passing are objects that may go still.
	Passing []passing `json:"passing,omitempty"`
}

// passing is an object that may go. One that is made anew has another UID, and may not.
type passing struct {
	Object change.Ref `json:"object"`
	UID    types.UID  `json:"uid"`
}

// uses of all approvals. They are kept in a ConfigMap on the seed.
type uses struct {
	// writing is held by whoever changes them, mu for a moment only.
	writing, mu sync.Mutex
	// known are they by the id as people gave it; nil before they were read.
	known map[string]use
}

// usesName is that ConfigMap.
const usesName = "pergola-gardenlet-approvals"

// noteTimeout bounds how long an approval waits until its use is noted.
const noteTimeout = 10 * time.Second

func usesRef() apply.Ref {
	return apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: owner.InventoryNamespace, Name: usesName}
}

// all are the uses as they are now; none before they were read.
func (u *uses) all() iter.Seq2[string, use] {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.All(maps.Clone(u.known))
}

// passing are all objects that may go still.
func (u *uses) passing() (out []passing) {
	for _, one := range u.all() {
		out = append(out, one.Passing...)
	}
	return out
}

// set keeps a use in memory.
func (u *uses) set(id string, one use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known[id] = one
}

func (u *uses) wereRead() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known != nil
}

// readUses reads what a former process has noted. Before that no approval counts.
func (g *Gardenlet) readUses(ctx context.Context) {
	g.uses.writing.Lock()
	defer g.uses.writing.Unlock()
	if g.uses.wereRead() {
		return
	}
	live, err := g.local.GetLive(ctx, usesRef())
	if err != nil && !apierrors.IsNotFound(err) {
		g.Log.Info("which approvals are used could not be read yet", "error", g.local.Explain(usesRef(), "read", err))
		return
	}
	known := map[string]use{}
	if err == nil {
		data, _, _ := unstructured.NestedStringMap(live.Object, "data")
		for id, text := range data {
			var one use
			_ = json.Unmarshal([]byte(text), &one) // of one that cannot be read it is known that it is used
			known[id] = one
		}
	}
	g.uses.mu.Lock()
	g.uses.known = known
	g.uses.mu.Unlock()
}

// take tells whether objects pass by an approval, and notes its use before. It is called by many goroutines.
func (g *Gardenlet) take(ctx context.Context, at *site, s *settings, of, id string, refs []change.Ref) bool {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	ok, err := g.passes(ctx, id, refs)
	if !ok && err == nil {
		ok, err = g.spend(ctx, s, id, func(shown string) (use, error) {
			objects, err := g.living(ctx, refs)
			if err == nil {
				g.Log.Info("an approval is used", "approval", shown, "owner", of, "objects", len(objects))
			}
			return use{Owner: of, Passing: objects}, err
		})
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if err != nil {
		at.notTaken = fmt.Errorf("approval %s: nothing passes by it, since it cannot be noted that it is used: %w", id, err)
		return false
	}
	if ok {
		if at.passed == nil {
			at.passed = map[string]bool{}
		}
		at.passed[id] = true
	}
	return ok
}

// passes tells whether an approval was used for an object that is there still, so that it may go. Others need an approval that counts.
func (g *Gardenlet) passes(ctx context.Context, id string, refs []change.Ref) (bool, error) {
	may := map[types.UID]bool{}
	for _, p := range g.uses.passing() {
		if permit.ApprovalID(g.local.Name(), p.Object) == id {
			may[p.UID] = true
		}
	}
	if len(may) == 0 || len(refs) != 1 {
		return false, nil
	}
	objects, err := g.living(ctx, refs)
	return err == nil && len(objects) == 1 && may[objects[0].UID], err
}

// living are those objects that are there, with their UIDs.
func (g *Gardenlet) living(ctx context.Context, refs []change.Ref) (out []passing, err error) {
	for _, ref := range refs {
		live, err := g.local.GetLive(ctx, ref)
		switch {
		case err == nil:
			out = append(out, passing{Object: ref, UID: live.GetUID()})
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err): // without its definition it is gone, too
			return nil, g.local.Explain(ref, "read", err)
		}
	}
	return out, nil
}

// errNotRead is why no approval counts yet.
var errNotRead = errors.New("which ones are used could not be read yet")

// spend notes that an approval is used, and says false where there is none that counts.
func (g *Gardenlet) spend(ctx context.Context, s *settings, id string, what func(shown string) (use, error)) (bool, error) {
	g.uses.writing.Lock()
	defer g.uses.writing.Unlock()
	if !g.uses.wereRead() {
		return false, errNotRead
	}
	g.mu.Lock()
	current := g.settings
	g.mu.Unlock()
	if current == nil {
		current = s
	}
	used := g.usedApprovals(s)
	shown := landscape.ShownApproval(id, used)
	// One that was taken back since the job began does not count any more.
	if !slices.Contains(s.approved, shown) || !slices.Contains(current.approved, shown) {
		return false, nil
	}
	one, err := what(shown)
	if err != nil {
		return false, err
	}
	if err := g.writeUse(ctx, shown, one); err != nil {
		return false, err
	}
	g.uses.set(shown, one)
	return true, nil
}

func (g *Gardenlet) writeUse(ctx context.Context, id string, one use) error {
	text, err := json.Marshal(one)
	if err == nil {
		err = g.writeOnSeed(ctx, usesRef(), map[string]any{id: string(text)})
	}
	if err != nil {
		return g.local.Explain(usesRef(), "note", err)
	}
	return nil
}

// settle ends what approvals let pass of an owner, after a run that has seen everything: what is gone is gone, and what is wanted again needs another
// one when it is to go once more. What is not gone yet may go still.
func (g *Gardenlet) settle(ctx context.Context, of string, o *owner.Owner) {
	g.uses.writing.Lock()
	defer g.uses.writing.Unlock()
	for id, one := range g.uses.all() {
		if one.Owner != of || len(one.Passing) == 0 {
			continue
		}
		left := use{Owner: of}
		for _, p := range one.Passing {
			if wanted(o, p.Object) {
				continue
			}
			objects, err := g.living(ctx, []change.Ref{p.Object})
			if err != nil {
				g.Log.Info("it is not known yet whether something that was approved is gone", "approval", id, "error", err)
				return // the next run asks again
			}
			if len(objects) == 1 && objects[0].UID == p.UID {
				left.Passing = append(left.Passing, p)
			}
		}
		if len(left.Passing) == len(one.Passing) {
			continue
		}
		if err := g.writeUse(ctx, id, left); err != nil {
			g.Log.Info("it could not be noted yet that an approval is settled", "approval", id, "error", err)
		}
		g.uses.set(id, left) // it allows less, and counts at once
	}
}

// wanted tells whether an owner has an object now.
func wanted(o *owner.Owner, ref change.Ref) bool {
	for _, b := range o.Bundles() {
		for _, object := range b.Objects {
			is := apply.RefOf(object.Unstructured)
			if is.GroupKind() == ref.GroupKind() && is.Namespace == ref.Namespace && is.Name == ref.Name {
				return true
			}
		}
	}
	return false
}

// forgetApprovals drops what is not approved any more: an id that is taken back and given again counts anew. While somebody else is at it, the next
// heartbeat does it.
func (g *Gardenlet) forgetApprovals(ctx context.Context) {
	if !g.uses.writing.TryLock() {
		return
	}
	defer g.uses.writing.Unlock()
	g.mu.Lock()
	s := g.settings
	g.mu.Unlock()
	if s == nil {
		return
	}
	gone := map[string]any{}
	for id := range g.uses.all() {
		if !slices.Contains(s.approved, id) {
			gone[id] = nil
		}
	}
	if len(gone) == 0 {
		return
	}
	if _, err := g.local.MergePatch(ctx, usesRef(), map[string]any{"data": gone}, "gardenlet", ""); err != nil && !apierrors.IsNotFound(err) {
		g.Log.Info("approvals that are not given any more could not be forgotten yet", "error", g.local.Explain(usesRef(), "note", err))
		return
	}
	g.uses.mu.Lock()
	defer g.uses.mu.Unlock()
	for id := range gone {
		delete(g.uses.known, id)
	}
}
