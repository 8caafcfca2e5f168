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

// Several landscapes may share a runtime cluster, and an object may move from one to another.
// Whoever is synced first, it is never deleted on the way, and two that declare the same object at
// a time do not fight over it.
//
// What a landscape declares is in its inventory, before it is applied. A landscape that lost an
// object asks the others first: it puts the object into the ConfigMap of its removals, and each of
// them notes there that it has seen that, at a state of its files that is not older than the
// question. One that has the object by then takes it over. When all have answered, the object is
// deleted.
//
// An object that one gives up while another one declares it is handed over at once, whether that
// has come to apply it or not: it is in the inventory of the other one, which deletes it if it does
// not want it any more.

// removalsBundle is the name of that ConfigMap among the inventories.
const removalsBundle = "removals"

// neighbour is another landscape of the runtime cluster.
type neighbour struct {
	name string
	// declares are the objects of one cluster that it has in its inventory.
	declares map[apply.Ref]apply.Entry
	// removes are those of them that it wants to give up.
	removes map[apply.Ref]bool
}

// wants says whether it declares an object and is not about to give it up.
func (n *neighbour) wants(ref apply.Ref) bool {
	return n.has(ref) && !n.removes[withoutVersion(ref)]
}

// has says whether an object is in its inventory.
func (n *neighbour) has(ref apply.Ref) bool {
	_, has := n.declares[withoutVersion(ref)]
	return has
}

func inventoryName(landscape, bundle string) string {
	return owner.InventoryPrefix + "landscape." + landscape + "." + bundle
}

// neighbours reads the inventories that other landscapes have for one cluster. That costs no
// request: they are in the live cache.
func (c *Converger) neighbours(ctx context.Context, cluster string) ([]*neighbour, error) {
	maps, err := c.landscapeMaps(ctx)
	if err != nil {
		return nil, err
	}
	var out []*neighbour
	for _, o := range maps {
		name, _ := strings.CutPrefix(o.GetLabels()[owner.LabelInventory], "landscape.")
		if name == c.landscape.Config.Name || o.GetLabels()[owner.LabelBundle] != cluster || o.GetName() != inventoryName(name, cluster) {
			continue
		}
		n := &neighbour{name: name, declares: map[apply.Ref]apply.Entry{}, removes: map[apply.Ref]bool{}}
		entries, err := apply.NewConfigMapInventory(c.links.clusters[Runtime], owner.InventoryNamespace, o.GetName(), nil).Load(ctx)
		if err != nil {
			return nil, fmt.Errorf("landscape %s: %w", name, err)
		}
		for _, e := range entries {
			n.declares[withoutVersion(e.Ref)] = e
		}
		if i := slices.IndexFunc(maps, func(m *unstructured.Unstructured) bool { return m.GetName() == inventoryName(name, removalsBundle) }); i >= 0 {
			for _, q := range questionsOf(maps[i]) {
				if q.Cluster == cluster {
					n.removes[withoutVersion(q.Object)] = true
				}
			}
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b *neighbour) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// landscapeMaps are the ConfigMaps of all landscapes.
func (c *Converger) landscapeMaps(ctx context.Context) ([]*unstructured.Unstructured, error) {
	all, err := c.links.clusters[Runtime].List(ctx, configMaps.GVK(), owner.InventoryNamespace, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the inventories of other landscapes: %w", err)
	}
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		return !strings.HasPrefix(o.GetLabels()[owner.LabelInventory], "landscape.")
	}), nil
}

// around is what the others of a runtime cluster have to do with the declarations of one cluster,
// during one run.
type around struct {
	c          *Converger
	cluster    string
	neighbours []*neighbour
	removals   *removals
	// known are the objects that this landscape has applied before.
	known map[apply.Ref]bool
}

func (c *Converger) lookAround(ctx context.Context, cluster string) (*around, error) {
	a := &around{c: c, cluster: cluster, known: map[apply.Ref]bool{}}
	var err error
	// Before the inventories: who came to declare an object and answered has it in its inventory by
	// then.
	if a.removals, err = c.removals(ctx); err != nil {
		return nil, err
	}
	if a.neighbours, err = c.neighbours(ctx, cluster); err != nil {
		return nil, err
	}
	entries, err := c.declarationInventory(cluster).Load(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		a.known[withoutVersion(e.Ref)] = e.Applied != ""
	}
	return a, nil
}

// desiredElsewhere says whether another landscape declares an object that left this one.
func (a *around) desiredElsewhere(ref apply.Ref) bool {
	return slices.ContainsFunc(a.neighbours, func(n *neighbour) bool { return n.wants(ref) })
}

// declaredBy says whether the landscape that an object belongs to still declares it. What belongs
// to anything else is taken, unless it was taken from us.
func (a *around) declaredBy(origin string, ref apply.Ref) (declared, known bool) {
	name, is := a.landscapeOf(origin)
	if !is {
		return a.known[withoutVersion(ref)], true
	}
	n := a.neighbour(name)
	return n != nil && n.wants(ref), true
}

// givenUp says whether the landscape that an object belongs to, by what it shows, does not have it
// in its inventory any more. Of one whose inventory is not there that is not known.
func (a *around) givenUp(origin string, ref apply.Ref) bool {
	name, is := a.landscapeOf(origin)
	if !is {
		return false
	}
	n := a.neighbour(name)
	return n != nil && !n.has(ref)
}

// landscapeOf is the name of the landscape in an origin annotation, if that is of declarations for
// the cluster.
func (a *around) landscapeOf(origin string) (name string, is bool) {
	set, is := strings.CutPrefix(origin, "landscape.")
	name, cluster, _ := strings.Cut(set, "/")
	return name, is && cluster == a.cluster
}

// neighbour is nil for a landscape that has no inventory for the cluster.
func (a *around) neighbour(name string) *neighbour {
	i := slices.IndexFunc(a.neighbours, func(n *neighbour) bool { return n.name == name })
	if i < 0 {
		return nil
	}
	return a.neighbours[i]
}

// unanswered says which landscapes have not said yet whether they have taken an object over; empty
// when all have.
func (a *around) unanswered(ref apply.Ref) string {
	var waiting []string
	for _, n := range a.neighbours {
		if !a.removals.answered(a.cluster, ref, n.name) {
			waiting = append(waiting, n.name)
		}
	}
	return strings.Join(waiting, ", ")
}

// declaredElsewhereError is why an object is not applied: another landscape declares it as well,
// and had it first.
type declaredElsewhereError struct {
	landscape string
	// file is where the other landscape declares it; empty where its inventory does not say.
	file string
}

func (e *declaredElsewhereError) Error() string {
	where := ""
	if e.file != "" {
		where = ", in " + e.file
	}
	return "landscape " + e.landscape + " declares this object as well" + where + ", and had it first"
}

// MovesFrom names the landscapes that a run waits for, because they have objects that moved from
// them. It names none when something else went wrong, too, which is no consequence of that.
func MovesFrom(err error) []string {
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
		case nil, *owner.FollowsError:
		case *apply.ObjectError:
			var elsewhere *declaredElsewhereError
			switch {
			case errors.As(e.Err, &elsewhere):
				if !slices.Contains(out, elsewhere.landscape) {
					out = append(out, elsewhere.landscape)
				}
			case e.Reason != apply.SkippedDependency:
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

// explain names the landscape and the file in the errors about objects that another one has.
func (a *around) explain(err error) error {
	var all apply.Errors
	if !errors.As(err, &all) {
		return err
	}
	for _, e := range all {
		for _, n := range a.neighbours {
			entry, declared := n.declares[withoutVersion(e.Object)]
			if name, is := a.landscapeOf(e.Set); !is || name != n.name || !declared {
				continue
			}
			e.Err = &declaredElsewhereError{landscape: n.name, file: entry.Source}
			e.Message = e.Err.Error()
			e.Hint = "declare it in one of the two only"
		}
	}
	return err
}

// holdMoving holds what may have moved to a landscape that has not said so yet, and asks for it.
func (a *around) holdMoving(entries []apply.Entry) (held []apply.Held, rest []apply.Entry) {
	for _, e := range entries {
		waiting := a.unanswered(e.Ref)
		id := permit.ApprovalID(a.cluster, e.Ref)
		if waiting == "" || a.c.options.Permits.Gate.Approves(id, e.Ref) {
			rest = append(rest, e)
			continue
		}
		shown := a.c.options.Permits.Gate.Reviewed
		a.removals.ask(a.cluster, e.Ref, shown != nil && shown(a.cluster, e.Ref))
		reason := change.Reason{Code: landscapev1alpha1.HeldMayHaveMoved, Detail: waiting}
		if shown != nil && !a.removals.reviewed(a.cluster, e.Ref) {
			reason.Code = landscapev1alpha1.HeldMovedUnreviewed
		}
		held = append(held, apply.Held{Ref: e.Ref, Approval: id, Reason: reason})
	}
	return held, rest
}

// currentAt is when the files of this converger were known to be the newest ones.
func (c *Converger) currentAt() time.Time {
	if c.options.CurrentAt != nil {
		return c.options.CurrentAt()
	}
	return c.made
}
