// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/deploy"
)

// FieldManager owns the installed objects.
const FieldManager = "pergola-install"

// Options are the options of an Installer.
type Options struct {
	Cluster *apply.Cluster
	// Seed is the seed of a deploy.GardenletAccess: the virtual garden has one installation for
	// each seed. Empty means the installation that all seeds shared in earlier versions.
	Seed  string
	Clock clock.WithTicker
	// Force takes over fields from other field managers, for example Helm or kubectl apply.
	Force bool
	// Gate holds deletions; the zero value holds none.
	Gate permit.Gate
	// Timeout of the wait for health, and of each phase of a deletion; zero does not wait for
	// health.
	Timeout time.Duration
	// OnObject is called with the result for each object.
	OnObject func(apply.ObjectResult)
}

// Installer installs one role into one cluster.
type Installer struct {
	role      deploy.Role
	namespace string
	options   Options
	engine    *apply.Engine
}

// Report has the results.
type Report struct {
	Objects []apply.ObjectResult
}

// Count returns the number of objects with one of the actions.
func (r *Report) Count(actions ...apply.Action) int {
	n := 0
	for _, o := range r.Objects {
		for _, a := range actions {
			if o.Action == a {
				n++
			}
		}
	}
	return n
}

// New makes an Installer and sends no request.
func New(role deploy.Role, namespace string, o Options) *Installer {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if namespace == "" {
		namespace = deploy.Namespace
	}
	return &Installer{role: role, namespace: namespace, options: o, engine: conventions.NewEngine(apply.Options{Clock: o.Clock})}
}

// objectGroups are the groups of objects of an installation: objects that outlive it, and objects
// that are deleted with it. Priority classes are neither: the Garden or Seed has them, too.
type objectGroups struct {
	retained, removable, priorityClasses []*unstructured.Unstructured
}

func groupObjects(in *deploy.Installation) objectGroups {
	var p objectGroups
	p.retained = append(p.retained, in.Definitions...)
	for _, o := range in.Objects {
		switch {
		case o.GetKind() == "PriorityClass":
			p.priorityClasses = append(p.priorityClasses, o)
		case deploy.IsRetained(o):
			p.retained = append(p.retained, o)
		default:
			p.removable = append(p.removable, o)
		}
	}
	return p
}

// objectSet returns a set of objects and its inventory; kept objects are never deleted.
func (i *Installer) objectSet(objects []*unstructured.Unstructured, kept bool) (apply.Set, apply.Inventory) {
	name := "install." + string(i.role)
	former := name
	switch {
	case kept:
		name += ".kept"
	case i.isPerSeed():
		name += "." + i.options.Seed
	}
	s := apply.Set{Name: i.namespace + "/" + name, Objects: objects, FieldManager: FieldManager, Force: i.options.Force, TakeBack: true, KeepObjects: kept}
	inventory := i.inventory(name)
	if !kept && i.isPerSeed() {
		s.PreviousNames = []string{i.namespace + "/" + former}
		inventory = &seedInventory{Inventory: inventory, shared: i.inventory(former), seed: i.options.Seed}
	}
	return s, inventory
}

// isPerSeed reports whether a cluster has several installations of the role, one for each seed.
func (i *Installer) isPerSeed() bool { return i.role == deploy.GardenletAccess && i.options.Seed != "" }

func (i *Installer) inventory(name string) apply.Inventory {
	labels := map[string]string{"app.kubernetes.io/name": "pergola", "app.kubernetes.io/component": string(i.role)}
	return apply.NewConfigMapInventory(i.options.Cluster, i.namespace, "pergola-"+name, labels)
}

// Apply installs, and waits until the installed objects are healthy. It returns a report even with
// an error.
func (i *Installer) Apply(ctx context.Context, in *deploy.Installation) (*Report, error) {
	report := &Report{}
	p := groupObjects(in)
	for _, o := range append(i.requiredNamespaces(p.removable), p.priorityClasses...) {
		if err := i.ensureExists(ctx, o, report); err != nil {
			return report, err
		}
	}
	if len(p.retained) > 0 {
		if err := i.apply(ctx, p.retained, true, report); err != nil {
			return report, err
		}
	}
	if err := i.apply(ctx, p.removable, false, report); err != nil {
		return report, err
	}
	return report, i.waitUntilHealthy(ctx, p.removable)
}

func (i *Installer) apply(ctx context.Context, objects []*unstructured.Unstructured, kept bool, report *Report) error {
	s, inventory := i.objectSet(objects, kept)
	options, err := i.gatedOptions(ctx, inventory, kept)
	if err != nil {
		return err
	}
	options.OnObject = i.options.OnObject
	result, err := i.engine.Apply(ctx, i.options.Cluster, s, inventory, options)
	if result != nil {
		report.Objects = append(report.Objects, result.Objects...)
	}
	return err
}

// requiredNamespaces returns the required namespaces: the installation's one and those of
// Gardener's system. A seed's namespace is excluded: its publisher creates it, and it is deleted
// with the Seed.
func (i *Installer) requiredNamespaces(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	names := []string{i.namespace}
	for _, o := range objects {
		if n := o.GetNamespace(); (n == deploy.Namespace || strings.HasPrefix(n, "gardener-system-")) && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	var out []*unstructured.Unstructured
	for _, n := range names {
		out = append(out, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": n}}})
	}
	return out
}

// gatedOptions returns the options of an apply or a plan with the deletion gate.
func (i *Installer) gatedOptions(ctx context.Context, inventory apply.Inventory, kept bool) (apply.ApplyOptions, error) {
	entries, err := inventory.Load(ctx)
	if err != nil {
		return apply.ApplyOptions{}, fmt.Errorf("reading the installed objects: %w", err)
	}
	return apply.ApplyOptions{NoPrune: kept, ApprovePrune: func(going []apply.Entry) []apply.HeldObject { return i.judgeDeletions(going, len(entries)) }}, nil
}

// judgeDeletions applies the deletion gate.
func (i *Installer) judgeDeletions(going []apply.Entry, total int) []apply.HeldObject {
	refs := make([]change.Ref, 0, len(going))
	for _, e := range going {
		refs = append(refs, e.Ref)
	}
	gate := i.options.Gate
	gate.PreviouslyHeld = apply.HeldReasons(going)
	verdict := gate.Judge(i.options.Cluster.Name(), refs, total)
	var held []apply.HeldObject
	for _, ref := range refs {
		if reason, ok := verdict.Held[ref]; ok {
			held = append(held, apply.HeldObject{Ref: ref, Reason: reason})
		}
	}
	return held
}

// ensureExists creates a shared object; an existing one is not changed.
func (i *Installer) ensureExists(ctx context.Context, o *unstructured.Unstructured, report *Report) error {
	c, ref := i.options.Cluster, apply.RefOf(o)
	_, err := c.GetLive(ctx, ref)
	action := apply.Unchanged
	if apierrors.IsNotFound(err) {
		mapping, merr := c.Mapping(ctx, ref.GVK())
		if merr != nil {
			return c.Explain(ref, "create", merr)
		}
		action = apply.Created
		_, err = c.Dynamic().Resource(mapping.Resource).Create(ctx, o, metav1.CreateOptions{FieldManager: FieldManager})
		if apierrors.IsAlreadyExists(err) {
			action, err = apply.Unchanged, nil
		}
	}
	if err != nil {
		return c.Explain(ref, "create", err)
	}
	result := apply.ObjectResult{Ref: ref, Action: action}
	report.Objects = append(report.Objects, result)
	if i.options.OnObject != nil {
		i.options.OnObject(result)
	}
	return nil
}

// Delete removes the installation. Definitions, Landscapes, priority classes, the namespace and
// everything that Pergola applied stay. A Landscape without an operator changes nothing.
func (i *Installer) Delete(ctx context.Context) (*Report, error) {
	s, inventory := i.objectSet(nil, false)
	result, err := i.engine.Delete(ctx, i.options.Cluster, s, inventory, apply.DeleteOptions{KeepCRDs: true, Timeout: i.options.Timeout, OnObject: i.options.OnObject})
	if result == nil {
		return &Report{}, err
	}
	return &Report{Objects: result.Objects}, err
}
