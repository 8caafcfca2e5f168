package managedresource

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// role writes status and finalizers, on behalf of upstream's component of that name.
const role = "gardener-resource-manager"

// statusInventory stores the inventory in status.resources, as upstream does. At the beginning of a
// run, one request writes it with the rest of the status; at the end, the caller does.
type statusInventory struct {
	r  *Reconciler
	mr *resourcesv1alpha1.ManagedResource
	// base is the inventory as last read or written.
	base []resourcesv1alpha1.ObjectReference
}

func (r *Reconciler) newInventory(mr *resourcesv1alpha1.ManagedResource) *statusInventory {
	return &statusInventory{r: r, mr: mr, base: r.recalled(mr.UID, mr.Status.Resources)}
}

// Load restores what Save omits.
func (i *statusInventory) Load(context.Context) ([]apply.Entry, error) {
	resources := i.r.recalled(i.mr.UID, i.mr.Status.Resources)
	entries := make([]apply.Entry, 0, len(resources))
	for _, res := range resources {
		entries = append(entries, apply.Entry{
			Ref:    apply.Ref{APIVersion: res.APIVersion, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name},
			Labels: res.Labels, Annotations: res.Annotations,
			Applied: res.AppliedDigest, Live: res.LiveDigest, CreateOnly: res.CreateOnly, Held: heldReason(res),
		})
		if e := &entries[len(entries)-1]; e.Applied == leaving {
			e.Applied, e.Leaving = "", true
		}
	}
	return entries, nil
}

// Begin writes the planned objects together with the conditions.
func (i *statusInventory) Begin(ctx context.Context, entries []apply.Entry) error {
	return i.Save(ctx, entries)
}

// End only sets the current objects: the caller writes them.
func (i *statusInventory) End(_ context.Context, entries []apply.Entry) error {
	resources, err := i.resources(entries)
	if err == nil {
		i.mr.Status.Resources = resources
	}
	return err
}

func (i *statusInventory) Save(ctx context.Context, entries []apply.Entry) error {
	if err := i.End(ctx, entries); err != nil {
		return err
	}
	return i.flush(ctx)
}

// flush writes the status with the inventory.
func (i *statusInventory) flush(ctx context.Context) error {
	err := i.r.flush(ctx, i.mr, i.base)
	if err == nil {
		i.base = i.mr.Status.Resources
	}
	return err
}

// finish writes the status at the end of a run, even of an interrupted one.
func (i *statusInventory) finish(ctx context.Context) error {
	ctx, cancel := outlast(ctx, clock.RealClock{}, finishTimeout)
	defer cancel()
	return i.flush(ctx)
}

// outlast returns a context that outlives ctx by a limited time. Until ctx ends it has no limit:
// requests have their own, which a busy API server may need.
func outlast(ctx context.Context, clk clock.Clock, limit time.Duration) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		over := clk.NewTimer(limit)
		defer over.Stop()
		select {
		case <-over.C():
			cancel()
		case <-lasting.Done():
		}
	})
	return lasting, func() {
		stop()
		cancel()
	}
}

// finishTimeout is how long an interrupted run may take to write its status.
const finishTimeout = 5 * time.Second

// Remove does nothing: the inventory is deleted with the ManagedResource.
func (i *statusInventory) Remove(context.Context) error { return nil }

// leaving replaces the digest of an object that left the ManagedResource and is still being
// deleted.
const leaving = "leaving"

const (
	// inventoryFull is the size in bytes from which an inventory omits applied labels and
	// annotations, which only people and upstream's resource manager need.
	inventoryFull = 640 << 10
	// inventoryLimit is the maximum size in bytes. etcd accepts 1.5 MiB for an object (its
	// --max-request-bytes), and the rest of the ManagedResource needs some of it.
	inventoryLimit = 1280 << 10
)

// resources converts entries to their form in the status. It omits annotations that are the same
// for all objects.
func (i *statusInventory) resources(entries []apply.Entry) ([]resourcesv1alpha1.ObjectReference, error) {
	own := i.r.SetName(i.mr.Namespace, i.mr.Name)
	resources := make([]resourcesv1alpha1.ObjectReference, 0, len(entries))
	for _, e := range entries {
		annotations := maps.Clone(e.Annotations)
		delete(annotations, resourcesv1alpha1.Description)
		if annotations[resourcesv1alpha1.Origin] == own {
			delete(annotations, resourcesv1alpha1.Origin)
		}
		if len(annotations) == 0 {
			annotations = nil
		}
		resources = append(resources, resourcesv1alpha1.ObjectReference{
			ObjectReference: corev1.ObjectReference{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name},
			Labels:          e.Labels, Annotations: annotations,
			AppliedDigest: e.Applied, LiveDigest: e.Live, CreateOnly: e.CreateOnly, HeldFor: heldFor(e.Held),
		})
		if e.Leaving {
			resources[len(resources)-1].AppliedDigest = leaving
		}
	}
	size, err := sizeOf(resources)
	if err != nil || size < inventoryFull {
		return resources, err
	}
	for n := range resources {
		resources[n].Labels = nil
		origin := resources[n].Annotations[resourcesv1alpha1.Origin]
		if resources[n].Annotations = nil; origin != "" {
			resources[n].Annotations = map[string]string{resourcesv1alpha1.Origin: origin}
		}
	}
	if size, err = sizeOf(resources); err != nil || size <= inventoryLimit {
		return resources, err
	}
	return nil, &apply.ObjectError{Cluster: i.r.Source.Name(), Object: ref(i.mr.Namespace, i.mr.Name), Op: "write the inventory", Reason: apply.Invalid,
		Message: fmt.Sprintf("the inventory of its %d objects would have %d KiB, and may have %d KiB: the storage of the API server takes 1.5 MiB for an object",
			len(entries), size>>10, inventoryLimit>>10),
		Hint: "split it into several ManagedResources; nothing of it is applied until then"}
}

func sizeOf(resources []resourcesv1alpha1.ObjectReference) (int, error) {
	text, err := json.Marshal(resources)
	if err != nil {
		return 0, fmt.Errorf("writing the inventory: %w", err)
	}
	return len(text), nil
}

// With upstream's definition of ManagedResources, an API server drops the digests from the status.
// They are then cached in memory; otherwise every run would send every object again.

// recall caches the digests that the API server dropped.
func (r *Reconciler) recall(uid types.UID, sent, kept []resourcesv1alpha1.ObjectReference) {
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	if len(sent) == 0 || sameResources(sent, kept) {
		delete(r.memory.unkept, uid)
		return
	}
	if r.memory.unkept == nil {
		r.memory.unkept = map[types.UID][]resourcesv1alpha1.ObjectReference{}
	}
	r.memory.unkept[uid] = sent
}

// forget drops the cached digests of a deleted ManagedResource.
func (r *Reconciler) forget(uid types.UID) {
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	delete(r.memory.unkept, uid)
}

// recalled adds the cached digests to the resources of a status.
func (r *Reconciler) recalled(uid types.UID, live []resourcesv1alpha1.ObjectReference) []resourcesv1alpha1.ObjectReference {
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	known := r.memory.unkept[uid]
	if len(known) != len(live) {
		return live
	}
	for i, res := range live {
		if res.AppliedDigest != "" || res.ObjectReference != known[i].ObjectReference {
			return live
		}
	}
	return known
}

func sameResources(a, b []resourcesv1alpha1.ObjectReference) bool {
	return equality.Semantic.DeepEqual(a, b)
}

// Inventory returns the inventory of a ManagedResource in its status.
func (r *Reconciler) Inventory(mr *resourcesv1alpha1.ManagedResource) apply.Inventory {
	return &saved{r.newInventory(mr)}
}

// saved is an inventory that writes every change at once, for users without conditions.
type saved struct{ inventory *statusInventory }

func (s *saved) Load(ctx context.Context) ([]apply.Entry, error) { return s.inventory.Load(ctx) }

func (s *saved) Save(ctx context.Context, entries []apply.Entry) error {
	return s.inventory.Save(ctx, entries)
}

func (s *saved) Remove(ctx context.Context) error { return s.inventory.Remove(ctx) }

func heldReason(of resourcesv1alpha1.ObjectReference) change.Reason {
	if of.HeldFor == nil {
		return change.Reason{Detail: of.Held}
	}
	return *of.HeldFor
}

func heldFor(r change.Reason) *landscapev1alpha1.HeldReason {
	if r.IsZero() {
		return nil
	}
	return &r
}
