// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// Several landscapes may share a runtime cluster, and an object may move from one to another. It is
// never deleted on the way, whichever is synced first, and two landscapes that declare it do not
// overwrite each other.
//
// The inventory of a landscape contains its declarations before they are applied. Before a
// landscape deletes an undeclared object, it asks the others: it adds the object to the ConfigMap
// of its removals. Each other landscape notes there that it has seen the question, with files that
// are not older. A landscape that declares the object by then takes it over. When all have
// answered, the object is deleted.
//
// If one landscape gives up an object while another declares it, the object is handed over at once,
// even before the other applies it. It is in the inventory of the other landscape, which deletes it
// once it is undeclared there.

// removalsBundle is the name of that ConfigMap among the inventories.
const removalsBundle = "removals"

// otherLandscape is another landscape of the runtime cluster.
type otherLandscape struct {
	name string
	// inventory contains its inventory for one cluster.
	inventory map[apply.Ref]apply.Entry
	// questioned are the objects that it asks about, to give them up.
	questioned map[apply.Ref]bool
}

// hasClaim reports whether it declares an object and does not give it up.
func (n *otherLandscape) hasClaim(ref apply.Ref) bool {
	return n.hasEntry(ref) && !n.questioned[versionlessRef(ref)]
}

// hasEntry reports whether its inventory contains an object.
func (n *otherLandscape) hasEntry(ref apply.Ref) bool {
	_, has := n.inventory[versionlessRef(ref)]
	return has
}

func inventoryName(landscape, bundle string) string {
	return owner.InventoryPrefix + "landscape." + landscape + "." + bundle
}

// readOtherInventories returns the inventories of other landscapes for one cluster. It reads the
// live cache, without a request.
func (c *Converger) readOtherInventories(ctx context.Context, cluster string) ([]*otherLandscape, error) {
	maps, err := c.landscapeConfigMaps(ctx)
	if err != nil {
		return nil, err
	}
	var out []*otherLandscape
	for _, o := range maps {
		name, _ := strings.CutPrefix(o.GetLabels()[owner.LabelInventory], "landscape.")
		if name == c.landscape.Config.Name || o.GetLabels()[owner.LabelBundle] != cluster || o.GetName() != inventoryName(name, cluster) {
			continue
		}
		n := &otherLandscape{name: name, inventory: map[apply.Ref]apply.Entry{}, questioned: map[apply.Ref]bool{}}
		entries, err := apply.NewConfigMapInventory(c.connections.clusters[Runtime], owner.InventoryNamespace, o.GetName(), nil).Load(ctx)
		if err != nil {
			return nil, fmt.Errorf("landscape %s: %w", name, err)
		}
		for _, e := range entries {
			n.inventory[versionlessRef(e.Ref)] = e
		}
		if i := slices.IndexFunc(maps, func(m *unstructured.Unstructured) bool { return m.GetName() == inventoryName(name, removalsBundle) }); i >= 0 {
			for _, q := range parseQuestions(maps[i]) {
				if q.Cluster == cluster {
					n.questioned[versionlessRef(q.Object)] = true
				}
			}
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b *otherLandscape) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// landscapeConfigMaps returns the ConfigMaps of all landscapes.
func (c *Converger) landscapeConfigMaps(ctx context.Context) ([]*unstructured.Unstructured, error) {
	all, err := c.connections.clusters[Runtime].List(ctx, configMapRef.GVK(), owner.InventoryNamespace, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the inventories of other landscapes: %w", err)
	}
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		return !strings.HasPrefix(o.GetLabels()[owner.LabelInventory], "landscape.")
	}), nil
}

// otherLandscapes is the state of other landscapes for the declarations of one cluster, during one
// run.
type otherLandscapes struct {
	converger  *Converger
	cluster    string
	landscapes []*otherLandscape
	removals   *removalQuestions
	// appliedBefore are the objects that this landscape has applied before.
	appliedBefore map[apply.Ref]bool
}

func (c *Converger) readOtherLandscapes(ctx context.Context, cluster string) (*otherLandscapes, error) {
	a := &otherLandscapes{converger: c, cluster: cluster, appliedBefore: map[apply.Ref]bool{}}
	var err error
	// Read removals before inventories: a landscape that has answered has the object, if declared,
	// in its inventory by then.
	if a.removals, err = c.readRemovalQuestions(ctx); err != nil {
		return nil, err
	}
	if a.landscapes, err = c.readOtherInventories(ctx, cluster); err != nil {
		return nil, err
	}
	entries, err := c.declarationInventory(cluster).Load(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		a.appliedBefore[versionlessRef(e.Ref)] = e.AppliedDigest != ""
	}
	return a, nil
}

// isDeclaredElsewhere reports whether another landscape declares an object that this one no longer
// declares.
func (a *otherLandscapes) isDeclaredElsewhere(ref apply.Ref) bool {
	return slices.ContainsFunc(a.landscapes, func(n *otherLandscape) bool { return n.hasClaim(ref) })
}

// isDeclaredBy reports whether the landscape that owns an object still declares it. Objects of
// other origins are adopted, unless they were taken from this landscape.
func (a *otherLandscapes) isDeclaredBy(origin string, ref apply.Ref) (declared, known bool) {
	name, is := a.landscapeOf(origin)
	if !is {
		return a.appliedBefore[versionlessRef(ref)], true
	}
	n := a.landscapeByName(name)
	return n != nil && n.hasClaim(ref), true
}

// hasReleased reports whether the landscape in the origin of an object no longer has it in its
// inventory. It is false without an inventory.
func (a *otherLandscapes) hasReleased(origin string, ref apply.Ref) bool {
	name, is := a.landscapeOf(origin)
	if !is {
		return false
	}
	n := a.landscapeByName(name)
	return n != nil && !n.hasEntry(ref)
}

// landscapeOf returns the landscape of an origin annotation, if that is the origin of declarations
// for the cluster.
func (a *otherLandscapes) landscapeOf(origin string) (name string, is bool) {
	set, is := strings.CutPrefix(origin, "landscape.")
	name, cluster, _ := strings.Cut(set, "/")
	return name, is && cluster == a.cluster
}

// landscapeByName returns nil for a landscape without an inventory for the cluster.
func (a *otherLandscapes) landscapeByName(name string) *otherLandscape {
	i := slices.IndexFunc(a.landscapes, func(n *otherLandscape) bool { return n.name == name })
	if i < 0 {
		return nil
	}
	return a.landscapes[i]
}

// pendingAnswers returns the landscapes that have not answered yet about an object, or "" if all
// have.
func (a *otherLandscapes) pendingAnswers(ref apply.Ref) string {
	var waiting []string
	for _, n := range a.landscapes {
		if !a.removals.isAnswered(a.cluster, ref, n.name) {
			waiting = append(waiting, n.name)
		}
	}
	return strings.Join(waiting, ", ")
}

// declaredElsewhereError means that an object is not applied, because another landscape declared it
// first.
type declaredElsewhereError struct {
	landscape string
	// file is the declaration of the other landscape; it is empty if its inventory does not say.
	file string
}

func (e *declaredElsewhereError) Error() string {
	where := ""
	if e.file != "" {
		where = ", in " + e.file
	}
	return "landscape " + e.landscape + " declares this object as well" + where + ", and declared it first"
}

// PendingMoveSources returns the landscapes that a run waits for, because they still own moved
// objects. It returns none if the error has another independent cause.
func PendingMoveSources(err error) []string {
	var out []string
	only := true
	var visit func(error)
	visit = func(err error) {
		if many, is := err.(interface{ Unwrap() []error }); is {
			for _, e := range many.Unwrap() {
				visit(e)
			}
			return
		}
		switch e := err.(type) {
		case nil, *apply.FollowsError:
		case *apply.ObjectError:
			var elsewhere *declaredElsewhereError
			switch {
			case errors.As(e.Err, &elsewhere):
				if !slices.Contains(out, elsewhere.landscape) {
					out = append(out, elsewhere.landscape)
				}
			case e.Reason != apply.ReasonSkippedDependency:
				only = false
			}
		default:
			if inner := errors.Unwrap(err); inner != nil {
				visit(inner)
			} else {
				only = false
			}
		}
	}
	visit(err)
	if !only {
		return nil
	}
	return out
}

// explainConflicts adds landscape and file to the errors about objects of other landscapes.
func (a *otherLandscapes) explainConflicts(err error) error {
	var all apply.Errors
	if !errors.As(err, &all) {
		return err
	}
	for _, e := range all {
		for _, n := range a.landscapes {
			entry, declared := n.inventory[versionlessRef(e.Object)]
			if name, is := a.landscapeOf(e.Set); !is || name != n.name || !declared {
				continue
			}
			e.Err = &declaredElsewhereError{landscape: n.name, file: entry.Source}
			e.Message = e.Err.Error()
			e.Hint = "declare it in only one of the two"
		}
	}
	return err
}

// holdPossiblyMoved holds objects that may have moved to a landscape without an answer, and asks
// about them.
func (a *otherLandscapes) holdPossiblyMoved(entries []apply.Entry) (held []apply.HeldObject, rest []apply.Entry) {
	for _, e := range entries {
		waiting := a.pendingAnswers(e.Ref)
		id := permit.ApprovalID(a.cluster, e.Ref)
		if waiting == "" || a.converger.options.Permits.Gate.UseApproval(id, e.Ref) {
			rest = append(rest, e)
			continue
		}
		shown := a.converger.options.Permits.Gate.Reviewed
		a.removals.addQuestion(a.cluster, e.Ref, shown != nil && shown(a.cluster, e.Ref))
		reason := change.Reason{Code: landscapev1alpha1.HeldPossibleMove, Detail: waiting}
		if shown != nil && !a.removals.isReviewed(a.cluster, e.Ref) {
			reason.Code = landscapev1alpha1.HeldPossibleMoveUnreviewed
		}
		held = append(held, apply.HeldObject{Ref: e.Ref, ApprovalID: id, Reason: reason})
	}
	return held, rest
}

// filesConfirmedAt returns when the files of this converger were known to be the newest.
func (c *Converger) filesConfirmedAt() time.Time {
	if c.options.FilesConfirmedAt != nil {
		return c.options.FilesConfirmedAt()
	}
	return c.createdAt
}
