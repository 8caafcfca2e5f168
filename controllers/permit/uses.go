package permit

import (
	"context"
	"errors"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// Use is what an approval was used for.
type Use struct {
	// Owner that has the objects.
	Owner string `json:"owner,omitempty"`
	// Passing are objects that may go still.
	Passing []Passing `json:"passing,omitempty"`
}

// Passing is an object that may go. An object that is made anew has another UID, and may not.
type Passing struct {
	Object change.Ref `json:"object"`
	UID    types.UID  `json:"uid"`
}

// Uses are what the approvals of one cluster were used for, by the ids as people gave them. The use
// of an approval is written before the first object goes by it, with the objects that it lets go:
// wherever the process ends, no approval lets a second deletion pass. These objects themselves,
// known by their UIDs, may go until they are gone: a convergence that fails halfway is repeated,
// maybe by another process.
type Uses struct {
	notes   *Notes[Use]
	cluster *apply.Cluster
}

// NewUses keeps uses in a ConfigMap of the cluster of the objects.
func NewUses(cluster *apply.Cluster, configMap apply.Ref, manager string) *Uses {
	return &Uses{notes: NewNotes[Use](cluster, configMap, manager), cluster: cluster}
}

// Read reads what a former process has noted. Before that no approval counts.
func (u *Uses) Read(ctx context.Context) error { return u.notes.Read(ctx) }

// IDs are the approvals that are used, as people gave them.
func (u *Uses) IDs() []string { return slices.Sorted(maps.Keys(u.notes.All())) }

// Passing are all objects that may go still.
func (u *Uses) Passing() (out []Passing) {
	for _, one := range u.notes.All() {
		out = append(out, one.Passing...)
	}
	return out
}

// Take is the Ledger of an owner. Objects whose approval was used before pass as long as they
// exist. Others need an approval that counts: Take notes its use, and returns it as people gave it.
// counts is as for Spend.
func (u *Uses) Take(ctx context.Context, owner, id string, refs []change.Ref, counts func() (shown string, counts bool)) (passes bool, spent string, err error) {
	if passes, err = u.passes(ctx, id, refs); passes || err != nil {
		return passes, "", err
	}
	spent, err = u.Spend(ctx, owner, refs, counts)
	return spent != "", spent, err
}

// passes reports whether the id is for objects of this cluster, and all of them that are there may
// go still.
func (u *Uses) passes(ctx context.Context, id string, refs []change.Ref) (bool, error) {
	may, known := map[types.UID]bool{}, map[string]bool{}
	for _, p := range u.Passing() {
		may[p.UID], known[ApprovalID(u.cluster.Name(), p.Object)] = true, true
	}
	if id != ApprovalID(u.cluster.Name(), refs...) || slices.ContainsFunc(refs, func(ref change.Ref) bool { return !known[ApprovalID(u.cluster.Name(), ref)] }) {
		return false, nil
	}
	objects, err := u.living(ctx, refs)
	return len(objects) > 0 && !slices.ContainsFunc(objects, func(p Passing) bool { return !may[p.UID] }), err
}

// living are those objects that are there, with their UIDs.
func (u *Uses) living(ctx context.Context, refs []change.Ref) (out []Passing, err error) {
	for _, ref := range refs {
		live, err := u.cluster.GetLive(ctx, ref)
		switch {
		case err == nil:
			out = append(out, Passing{Object: ref, UID: live.GetUID()})
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			// without its definition it is gone, too
			return nil, u.cluster.Explain(ref, "read", err)
		}
	}
	return out, nil
}

// ErrNotRead is why no approval counts yet.
var ErrNotRead = errors.New("which ones are used could not be read yet")

// Spend notes that an owner uses an approval for objects; without objects it only uses the approval
// up. It returns the approval as people gave it, empty where it does not count. counts says both,
// and nobody else writes while Spend calls it.
func (u *Uses) Spend(ctx context.Context, owner string, refs []change.Ref, counts func() (shown string, counts bool)) (spent string, err error) {
	u.notes.writing.Lock()
	defer u.notes.writing.Unlock()
	if !u.notes.IsRead() {
		return "", ErrNotRead
	}
	shown, open := counts()
	if !open {
		return "", nil
	}
	objects, err := u.living(ctx, refs)
	if err == nil {
		err = u.notes.write(ctx, shown, Use{Owner: owner, Passing: objects})
	}
	if err != nil {
		return "", err
	}
	return shown, nil
}

// Settle ends the approvals of an owner, after a run that has seen everything. An object that is
// declared again needs another approval to go once more. Objects that still exist may go. An object
// that cannot be read is checked again the next time.
func (u *Uses) Settle(ctx context.Context, owner string, wanted func(change.Ref) bool) (errs error) {
	for id, one := range u.notes.All() {
		if one.Owner != owner || len(one.Passing) == 0 {
			continue
		}
		err := u.notes.Change(ctx, id, func(one Use, known bool) (Use, bool) {
			if !known || one.Owner != owner {
				return one, true // it was forgotten meanwhile, and maybe given anew
			}
			left := Use{Owner: owner}
			for _, p := range one.Passing {
				if wanted(p.Object) {
					continue
				}
				objects, err := u.living(ctx, []change.Ref{p.Object})
				if err != nil {
					errs = errors.Join(errs, err)
					return one, true
				}
				if len(objects) == 1 && objects[0].UID == p.UID {
					left.Passing = append(left.Passing, p)
				}
			}
			return left, true // it allows less, and counts at once
		})
		errs = errors.Join(errs, err)
	}
	return errs
}

// Forget drops what is not given any more: an id that is taken back and given again counts anew. No
// use is noted while it asks.
func (u *Uses) Forget(ctx context.Context, given func(id string) bool) error {
	return u.notes.Drop(ctx, func(id string) bool { return !given(id) })
}
