package permit

import (
	"context"
	"errors"
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

// Uses are what the approvals of one cluster were used for, by the ids as people gave them. The use of an approval is written before the first object goes by it,
// with the objects that it lets go: wherever the process ends, no approval lets a second deletion pass. These objects themselves, known by their UIDs, may go
// until they are gone: a convergence that fails halfway is repeated, maybe by another process.
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
func (u *Uses) IDs() []string {
	var out []string
	for id := range u.notes.All() {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// Passing are all objects that may go still.
func (u *Uses) Passing() (out []Passing) {
	for _, one := range u.notes.All() {
		out = append(out, one.Passing...)
	}
	return out
}

// Passes reports whether an approval was used for an object that is there still, so that it may go. Others need an approval that counts.
func (u *Uses) Passes(ctx context.Context, id string, refs []change.Ref) (bool, error) {
	may := map[types.UID]bool{}
	for _, p := range u.Passing() {
		if ApprovalID(u.cluster.Name(), p.Object) == id {
			may[p.UID] = true
		}
	}
	if len(may) == 0 || len(refs) != 1 {
		return false, nil
	}
	objects, err := u.living(ctx, refs)
	return err == nil && len(objects) == 1 && may[objects[0].UID], err
}

// living are those objects that are there, with their UIDs.
func (u *Uses) living(ctx context.Context, refs []change.Ref) (out []Passing, err error) {
	for _, ref := range refs {
		live, err := u.cluster.GetLive(ctx, ref)
		switch {
		case err == nil:
			out = append(out, Passing{Object: ref, UID: live.GetUID()})
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err): // without its definition it is gone, too
			return nil, u.cluster.Explain(ref, "read", err)
		}
	}
	return out, nil
}

// ErrNotRead is why no approval counts yet.
var ErrNotRead = errors.New("which ones are used could not be read yet")

// Spend notes that an approval is used by an owner for objects, none to use it up. open gives, while nobody else writes, the id as people gave it, and false
// where it does not count.
func (u *Uses) Spend(ctx context.Context, owner string, refs []change.Ref, open func() (shown string, counts bool)) (objects []Passing, spent string, err error) {
	u.notes.writing.Lock()
	defer u.notes.writing.Unlock()
	if !u.notes.IsRead() {
		return nil, "", ErrNotRead
	}
	shown, counts := open()
	if !counts {
		return nil, "", nil
	}
	if objects, err = u.living(ctx, refs); err != nil {
		return nil, "", err
	}
	return objects, shown, u.notes.write(ctx, shown, Use{Owner: owner, Passing: objects})
}

// Settle ends the approvals of an owner, after a run that has seen everything. An object that is declared again needs another approval to go once more.
// Objects that still exist may go. An object that cannot be read is checked again the next time.
func (u *Uses) Settle(ctx context.Context, owner string, wanted func(change.Ref) bool) (errs error) {
	for id, one := range u.notes.All() {
		if one.Owner != owner || len(one.Passing) == 0 {
			continue
		}
		err := u.notes.Change(ctx, id, func(one Use, _ bool) (Use, bool, bool) {
			left := Use{Owner: owner}
			for _, p := range one.Passing {
				if wanted(p.Object) {
					continue
				}
				objects, err := u.living(ctx, []change.Ref{p.Object})
				if err != nil {
					errs = errors.Join(errs, err)
					return one, false, false
				}
				if len(objects) == 1 && objects[0].UID == p.UID {
					left.Passing = append(left.Passing, p)
				}
			}
			return left, len(left.Passing) != len(one.Passing), true // it allows less, and counts at once
		})
		errs = errors.Join(errs, err)
	}
	return errs
}

// Forget drops what is not approved any more: an id that is taken back and given again counts anew.
func (u *Uses) Forget(ctx context.Context, approved []string) error {
	return u.notes.Drop(ctx, func(id string) bool { return !slices.Contains(approved, id) })
}
