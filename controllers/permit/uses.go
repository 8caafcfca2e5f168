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

// Use records the objects of a used approval.
type Use struct {
	// Owner of the objects.
	Owner string `json:"owner,omitempty"`
	// Passing are the objects that may still be deleted.
	Passing []Passing `json:"passing,omitempty"`
}

// Passing is an object that may be deleted. A recreated object has another UID and needs another
// approval.
type Passing struct {
	Object change.Ref `json:"object"`
	UID    types.UID  `json:"uid"`
}

// Uses records the used approvals of one cluster by their given ids. It writes the use, with the
// objects, before the first deletion: even after a crash no approval permits a second deletion. The
// objects themselves, known by UIDs, may be deleted until they no longer exist: a failed
// convergence is repeated, maybe after a restart.
type Uses struct {
	notes   *Notes[Use]
	cluster *apply.Cluster
}

// NewUses stores uses in a ConfigMap of the cluster of the objects.
func NewUses(cluster *apply.Cluster, configMap apply.Ref, manager string) *Uses {
	return &Uses{notes: NewNotes[Use](cluster, configMap, manager), cluster: cluster}
}

// Read loads the uses of an earlier process. No approval counts before that.
func (u *Uses) Read(ctx context.Context) error { return u.notes.Read(ctx) }

// IDs returns the used approvals, as given.
func (u *Uses) IDs() []string { return slices.Sorted(maps.Keys(u.notes.All())) }

// Passing returns all objects that may still be deleted.
func (u *Uses) Passing() (out []Passing) {
	for _, one := range u.notes.All() {
		out = append(out, one.Passing...)
	}
	return out
}

// Take is the Ledger of an owner. Objects of a used approval pass while they exist. Others need an
// approval that counts: Take records its use, and returns it as given. counts is as for Spend.
func (u *Uses) Take(ctx context.Context, owner, id string, refs []change.Ref, counts func() (shown string, counts bool)) (passes bool, spent string, err error) {
	if passes, err = u.passes(ctx, id, refs); passes || err != nil {
		return passes, "", err
	}
	spent, err = u.Spend(ctx, owner, refs, counts)
	return spent != "", spent, err
}

// passes reports whether the id is for objects of this cluster whose existing instances may all
// still be deleted.
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

// living returns the existing objects with their UIDs.
func (u *Uses) living(ctx context.Context, refs []change.Ref) (out []Passing, err error) {
	for _, ref := range refs {
		live, err := u.cluster.GetLive(ctx, ref)
		switch {
		case err == nil:
			out = append(out, Passing{Object: ref, UID: live.GetUID()})
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			// without its definition the object does not exist
			return nil, u.cluster.Explain(ref, "read", err)
		}
	}
	return out, nil
}

// ErrNotRead is returned while no approval counts yet.
var ErrNotRead = errors.New("which ones are used could not be read yet")

// Spend records that an owner uses an approval for objects; without objects it only uses the
// approval up. It returns the approval as given, or "" if it does not count. counts returns both,
// and no other write happens while Spend calls it.
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

// Settle ends the approvals of an owner after a complete run. An object that is declared again
// needs another approval. Objects that still exist may be deleted. An unreadable object is checked
// again the next time.
func (u *Uses) Settle(ctx context.Context, owner string, wanted func(change.Ref) bool) (errs error) {
	for id, one := range u.notes.All() {
		if one.Owner != owner || len(one.Passing) == 0 {
			continue
		}
		err := u.notes.Change(ctx, id, func(one Use, known bool) (Use, bool) {
			if !known || one.Owner != owner {
				return one, true // it was forgotten meanwhile, and maybe given again
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

// Forget drops ids that are no longer given: an id that is withdrawn and given again counts again.
// No use is recorded while it calls given.
func (u *Uses) Forget(ctx context.Context, given func(id string) bool) error {
	return u.notes.Drop(ctx, func(id string) bool { return !given(id) })
}
