// SPDX-License-Identifier: Apache-2.0

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

// statusFieldManager writes status and finalizers, on behalf of upstream's component of that name.
const statusFieldManager = "gardener-resource-manager"

// statusInventory stores the inventory in status.resources, as upstream does. At the beginning of a
// run, one request writes it with the rest of the status; at the end, the caller does.
type statusInventory struct {
	reconciler      *Reconciler
	managedResource *resourcesv1alpha1.ManagedResource
	// base is the inventory as last read or written.
	base []resourcesv1alpha1.ObjectReference
}

func (r *Reconciler) newInventory(mr *resourcesv1alpha1.ManagedResource) *statusInventory {
	return &statusInventory{reconciler: r, managedResource: mr, base: r.withRememberedDigests(mr.UID, mr.Status.Resources)}
}

// Load restores what Save omits.
func (i *statusInventory) Load(context.Context) ([]apply.Entry, error) {
	resources := i.reconciler.withRememberedDigests(i.managedResource.UID, i.managedResource.Status.Resources)
	entries := make([]apply.Entry, 0, len(resources))
	for _, res := range resources {
		entries = append(entries, apply.Entry{
			Ref:    apply.Ref{APIVersion: res.APIVersion, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name},
			Labels: res.Labels, Annotations: res.Annotations,
			AppliedDigest: res.AppliedDigest, LiveDigest: res.LiveDigest, CreateOnlyFields: res.CreateOnly, HeldReason: reasonOfReference(res),
		})
		if e := &entries[len(entries)-1]; e.AppliedDigest == terminatingDigest {
			e.AppliedDigest, e.Deleting = "", true
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
	resources, err := i.objectReferences(entries)
	if err == nil {
		i.managedResource.Status.Resources = resources
	}
	return err
}

func (i *statusInventory) Save(ctx context.Context, entries []apply.Entry) error {
	if err := i.End(ctx, entries); err != nil {
		return err
	}
	return i.writeStatus(ctx)
}

// writeStatus writes the status with the inventory.
func (i *statusInventory) writeStatus(ctx context.Context) error {
	err := i.reconciler.writeStatus(ctx, i.managedResource, i.base)
	if err == nil {
		i.base = i.managedResource.Status.Resources
	}
	return err
}

// writeFinalStatus writes the status at the end of a run, even of an interrupted one.
func (i *statusInventory) writeFinalStatus(ctx context.Context) error {
	ctx, cancel := extendContext(ctx, clock.RealClock{}, finalWriteTimeout)
	defer cancel()
	return i.writeStatus(ctx)
}

// extendContext returns a context that outlives ctx by a limited time. Until ctx ends it has no
// limit: requests have their own, which a busy API server may need.
func extendContext(ctx context.Context, clk clock.Clock, limit time.Duration) (context.Context, context.CancelFunc) {
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

// finalWriteTimeout is how long an interrupted run may take to write its status.
const finalWriteTimeout = 5 * time.Second

// Remove does nothing: the inventory is deleted with the ManagedResource.
func (i *statusInventory) Remove(context.Context) error { return nil }

// terminatingDigest replaces the digest of an object that left the ManagedResource and is still
// being deleted.
const terminatingDigest = "leaving"

const (
	// inventorySoftLimit is the size in bytes from which an inventory omits applied labels and
	// annotations, which only people and upstream's resource manager need.
	inventorySoftLimit = 640 << 10
	// inventoryHardLimit is the maximum size in bytes. etcd accepts 1.5 MiB for an object (its
	// --max-request-bytes), and the rest of the ManagedResource needs some of it.
	inventoryHardLimit = 1280 << 10
)

// objectReferences converts entries to their form in the status. It omits annotations that are the
// same for all objects.
func (i *statusInventory) objectReferences(entries []apply.Entry) ([]resourcesv1alpha1.ObjectReference, error) {
	own := i.reconciler.NameOfSet(i.managedResource.Namespace, i.managedResource.Name)
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
			AppliedDigest: e.AppliedDigest, LiveDigest: e.LiveDigest, CreateOnly: e.CreateOnlyFields, HeldFor: reasonForStatus(e.HeldReason),
		})
		if e.Deleting {
			resources[len(resources)-1].AppliedDigest = terminatingDigest
		}
	}
	size, err := jsonSize(resources)
	if err != nil || size < inventorySoftLimit {
		return resources, err
	}
	for n := range resources {
		resources[n].Labels = nil
		origin := resources[n].Annotations[resourcesv1alpha1.Origin]
		if resources[n].Annotations = nil; origin != "" {
			resources[n].Annotations = map[string]string{resourcesv1alpha1.Origin: origin}
		}
	}
	if size, err = jsonSize(resources); err != nil || size <= inventoryHardLimit {
		return resources, err
	}
	return nil, &apply.ObjectError{Cluster: i.reconciler.Source.Name(), Object: managedResourceRef(i.managedResource.Namespace, i.managedResource.Name), Op: "write the inventory", Reason: apply.ReasonInvalid,
		Message: fmt.Sprintf("the inventory of its %d objects needs %d KiB, but at most %d KiB are allowed: etcd stores at most 1.5 MiB an object",
			len(entries), size>>10, inventoryHardLimit>>10),
		Hint: "split it into several ManagedResources; nothing of it is applied until then"}
}

func jsonSize(resources []resourcesv1alpha1.ObjectReference) (int, error) {
	text, err := json.Marshal(resources)
	if err != nil {
		return 0, fmt.Errorf("writing the inventory: %w", err)
	}
	return len(text), nil
}

// With upstream's definition of ManagedResources, an API server drops the digests from the status.
// They are then cached in memory; otherwise every run would send every object again.

// rememberDigests caches the digests that the API server dropped.
func (r *Reconciler) rememberDigests(uid types.UID, sent, kept []resourcesv1alpha1.ObjectReference) {
	r.digestMemory.mu.Lock()
	defer r.digestMemory.mu.Unlock()
	if len(sent) == 0 || hasSameReferences(sent, kept) {
		delete(r.digestMemory.inventories, uid)
		return
	}
	if r.digestMemory.inventories == nil {
		r.digestMemory.inventories = map[types.UID][]resourcesv1alpha1.ObjectReference{}
	}
	r.digestMemory.inventories[uid] = sent
}

// forgetDigests drops the cached digests of a deleted ManagedResource.
func (r *Reconciler) forgetDigests(uid types.UID) {
	r.digestMemory.mu.Lock()
	defer r.digestMemory.mu.Unlock()
	delete(r.digestMemory.inventories, uid)
}

// withRememberedDigests adds the cached digests to the resources of a status.
func (r *Reconciler) withRememberedDigests(uid types.UID, live []resourcesv1alpha1.ObjectReference) []resourcesv1alpha1.ObjectReference {
	r.digestMemory.mu.Lock()
	defer r.digestMemory.mu.Unlock()
	known := r.digestMemory.inventories[uid]
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

func hasSameReferences(a, b []resourcesv1alpha1.ObjectReference) bool {
	return equality.Semantic.DeepEqual(a, b)
}

// Inventory returns the inventory of a ManagedResource in its status.
func (r *Reconciler) Inventory(mr *resourcesv1alpha1.ManagedResource) apply.Inventory {
	return &writeThroughInventory{r.newInventory(mr)}
}

// writeThroughInventory is an inventory that writes every change at once, for users without
// conditions.
type writeThroughInventory struct{ statusInventory *statusInventory }

func (s *writeThroughInventory) Load(ctx context.Context) ([]apply.Entry, error) {
	return s.statusInventory.Load(ctx)
}

func (s *writeThroughInventory) Save(ctx context.Context, entries []apply.Entry) error {
	return s.statusInventory.Save(ctx, entries)
}

func (s *writeThroughInventory) Remove(ctx context.Context) error {
	return s.statusInventory.Remove(ctx)
}

func reasonOfReference(of resourcesv1alpha1.ObjectReference) change.Reason {
	if of.HeldFor == nil {
		return change.Reason{Detail: of.Held}
	}
	return *of.HeldFor
}

func reasonForStatus(r change.Reason) *landscapev1alpha1.HeldReason {
	if r.IsZero() {
		return nil
	}
	return &r
}
