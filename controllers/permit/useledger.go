// SPDX-License-Identifier: Apache-2.0

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

// ApprovalUse records the objects of a used approval.
type ApprovalUse struct {
	// Owner is the owner of the objects.
	Owner string `json:"owner,omitempty"`
	// DeletableObjects are the objects that may still be deleted.
	DeletableObjects []DeletableObject `json:"passing,omitempty"`
}

// DeletableObject is an object that may be deleted. A recreated object has another UID and needs
// another approval.
type DeletableObject struct {
	Object change.Ref `json:"object"`
	UID    types.UID  `json:"uid"`
}

// UseLedger records the used approvals of one cluster by their given ids. It writes the use, with
// the objects, before the first deletion: even after a crash no approval permits a second deletion.
// The objects themselves, known by UIDs, may be deleted until they no longer exist: a failed
// convergence is repeated, maybe after a restart.
type UseLedger struct {
	store   *ConfigMapStore[ApprovalUse]
	cluster *apply.Cluster
}

// NewUseLedger stores uses in a ConfigMap of the cluster of the objects.
func NewUseLedger(cluster *apply.Cluster, configMap apply.Ref, manager string) *UseLedger {
	return &UseLedger{store: NewConfigMapStore[ApprovalUse](cluster, configMap, manager), cluster: cluster}
}

// Read loads the uses of an earlier process. No approval counts before that.
func (u *UseLedger) Read(ctx context.Context) error { return u.store.Read(ctx) }

// IDs returns the used approvals, as given.
func (u *UseLedger) IDs() []string { return slices.Sorted(maps.Keys(u.store.Values())) }

// DeletableObjects returns all objects that may still be deleted.
func (u *UseLedger) DeletableObjects() (out []DeletableObject) {
	for _, one := range u.store.Values() {
		out = append(out, one.DeletableObjects...)
	}
	return out
}

// Permit is the Ledger of an owner. Objects of a used approval pass while they exist. Others need
// an approval that counts: Take records its use, and returns it as given. counts is as for Spend.
func (u *UseLedger) Permit(ctx context.Context, owner, id string, refs []change.Ref, counts func() (shown string, counts bool)) (passes bool, spent string, err error) {
	if passes, err = u.isDeletable(ctx, id, refs); passes || err != nil {
		return passes, "", err
	}
	spent, err = u.RecordUse(ctx, owner, refs, counts)
	return spent != "", spent, err
}

// isDeletable reports whether the id is for objects of this cluster whose existing instances may
// all still be deleted.
func (u *UseLedger) isDeletable(ctx context.Context, id string, refs []change.Ref) (bool, error) {
	may, known := map[types.UID]bool{}, map[string]bool{}
	for _, p := range u.DeletableObjects() {
		may[p.UID], known[ApprovalID(u.cluster.Name(), p.Object)] = true, true
	}
	if id != ApprovalID(u.cluster.Name(), refs...) || slices.ContainsFunc(refs, func(ref change.Ref) bool { return !known[ApprovalID(u.cluster.Name(), ref)] }) {
		return false, nil
	}
	objects, err := u.existingObjects(ctx, refs)
	return len(objects) > 0 && !slices.ContainsFunc(objects, func(p DeletableObject) bool { return !may[p.UID] }), err
}

// existingObjects returns the existing objects with their UIDs.
func (u *UseLedger) existingObjects(ctx context.Context, refs []change.Ref) (out []DeletableObject, err error) {
	for _, ref := range refs {
		live, err := u.cluster.GetLive(ctx, ref)
		switch {
		case err == nil:
			out = append(out, DeletableObject{Object: ref, UID: live.GetUID()})
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			// without its definition the object does not exist
			return nil, u.cluster.Explain(ref, "read", err)
		}
	}
	return out, nil
}

// ErrUsesNotRead is returned while no approval counts yet.
var ErrUsesNotRead = errors.New("the used approvals could not be read yet")

// RecordUse records that an owner uses an approval for objects; without objects it only uses the
// approval up. It returns the approval as given, or "" if it does not count. counts returns both,
// and no other write happens while Spend calls it.
func (u *UseLedger) RecordUse(ctx context.Context, owner string, refs []change.Ref, counts func() (shown string, counts bool)) (spent string, err error) {
	u.store.writeLock.Lock()
	defer u.store.writeLock.Unlock()
	if !u.store.IsRead() {
		return "", ErrUsesNotRead
	}
	shown, open := counts()
	if !open {
		return "", nil
	}
	objects, err := u.existingObjects(ctx, refs)
	if err == nil {
		err = u.store.write(ctx, shown, ApprovalUse{Owner: owner, DeletableObjects: objects})
	}
	if err != nil {
		return "", err
	}
	return shown, nil
}

// PruneDeletable ends the approvals of an owner after a complete run. An object that is declared
// again needs another approval. Objects that still exist may be deleted. An unreadable object is
// checked again the next time.
func (u *UseLedger) PruneDeletable(ctx context.Context, owner string, wanted func(change.Ref) bool) (errs error) {
	for id, one := range u.store.Values() {
		if one.Owner != owner || len(one.DeletableObjects) == 0 {
			continue
		}
		err := u.store.Change(ctx, id, func(one ApprovalUse, known bool) (ApprovalUse, bool) {
			if !known || one.Owner != owner {
				return one, true // it was forgotten meanwhile, and maybe given again
			}
			left := ApprovalUse{Owner: owner}
			for _, p := range one.DeletableObjects {
				if wanted(p.Object) {
					continue
				}
				objects, err := u.existingObjects(ctx, []change.Ref{p.Object})
				if err != nil {
					errs = errors.Join(errs, err)
					return one, true
				}
				if len(objects) == 1 && objects[0].UID == p.UID {
					left.DeletableObjects = append(left.DeletableObjects, p)
				}
			}
			return left, true // it allows less, and counts at once
		})
		errs = errors.Join(errs, err)
	}
	return errs
}

// DropWithdrawn drops ids that are no longer given: an id that is withdrawn and given again counts
// again. No use is recorded while it calls given.
func (u *UseLedger) DropWithdrawn(ctx context.Context, given func(id string) bool) error {
	return u.store.Delete(ctx, func(id string) bool { return !given(id) })
}
