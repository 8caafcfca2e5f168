// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
)

// A Garden that is restored from a backup (commands/recovery) gets a new UID. Resources outside of
// its cluster are named after the old one, above all the backup bucket of etcd. So an annotation
// has the old UID, with precedence over the new one.
const (
	// AnnotationOriginalUID on a Garden is its UID in the lost cluster.
	AnnotationOriginalUID = "recovery.pergola.dev/uid"
	// AnnotationBackup names the backup that a Garden was restored from.
	AnnotationBackup = "recovery.pergola.dev/backup"
	// AnnotationRestoreUnfinished is on a Garden until its backup is restored completely.
	// Reconciling it before would generate the missing CAs and keys again.
	AnnotationRestoreUnfinished = "recovery.pergola.dev/unfinished"
)

// managerRecovery is the field manager of these annotations.
const managerRecovery = "pergola-recovery"

// ExternalUID returns the UID that names resources of an owner outside of its cluster.
func ExternalUID(live *unstructured.Unstructured) string {
	return cmp.Or(live.GetAnnotations()[AnnotationOriginalUID], string(live.GetUID()))
}

// checkRestored returns an error if a Garden must not be reconciled.
func checkRestored(live *unstructured.Unstructured) error {
	backup, is := live.GetAnnotations()[AnnotationRestoreUnfinished]
	if !is {
		return nil
	}
	return fmt.Errorf("not reconciled, because backup %s is not restored completely: continue with pergola restore and the same file", backup)
}

// DeclaredGarden returns the Garden as Git declares it.
func (c *Converger) DeclaredGarden() (*unstructured.Unstructured, error) {
	for _, o := range splitByCluster(c.landscape)[Runtime].objects {
		if o.GroupVersionKind().GroupKind() == gardenKind {
			return o.DeepCopy(), nil
		}
	}
	return nil, errors.New("the landscape declares no Garden")
}

var (
	gardenKind     = schema.GroupKind{Group: "operator.gardener.cloud", Kind: "Garden"}
	gardenResource = schema.GroupVersionResource{Group: "operator.gardener.cloud", Version: "v1alpha1", Resource: "gardens"}
)

// LiveGarden returns the Garden of the runtime cluster, or nil if it or its kind does not exist.
func (c *Converger) LiveGarden(ctx context.Context) (*unstructured.Unstructured, error) {
	declared, err := c.DeclaredGarden()
	if err != nil {
		return nil, err
	}
	return LiveGarden(ctx, c.connections.clusters[Runtime], declared.GetName())
}

// LiveGarden returns the Garden of a runtime cluster, or nil if none exists. Another name is an
// error.
func LiveGarden(ctx context.Context, runtime *apply.Cluster, name string) (*unstructured.Unstructured, error) {
	ref := apply.Ref{APIVersion: "operator.gardener.cloud/v1alpha1", Kind: "Garden"}
	list, err := runtime.Dynamic().Resource(gardenResource).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && len(list.Items) == 0:
		return nil, nil
	case err != nil:
		return nil, runtime.Explain(ref, "list", err)
	}
	for i := range list.Items {
		if list.Items[i].GetName() == name {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("the Garden of cluster %s is %q, but the landscape declares %q", runtime.Name(), list.Items[0].GetName(), name)
}

// AcquireLease acquires the lease of a cluster's reconciler until the converger is closed.
func (c *Converger) AcquireLease(ctx context.Context, cluster string) error {
	if cluster == Runtime {
		return c.acquireRoleLease(ctx, Runtime, operatorLease)
	}
	return c.acquireRoleLease(ctx, cluster, gardenletLease)
}

// WithLeaseContext returns a context that also ends when a lease is lost.
func (c *Converger) WithLeaseContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return c.withLeaseContext(ctx)
}

// BeginGardenRestore creates the declared Garden with the UID from a backup, and installs its CRD
// if necessary. It is not reconciled before FinishGardenRestore.
func (c *Converger) BeginGardenRestore(ctx context.Context, backup, uid string) error {
	if err := c.applyBootstrap(ctx); err != nil {
		return fmt.Errorf("bootstrap of the runtime cluster: %w", err)
	}
	garden, err := c.DeclaredGarden()
	if err != nil {
		return err
	}
	marked := garden.DeepCopy()
	annotations := marked.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationOriginalUID], annotations[AnnotationBackup], annotations[AnnotationRestoreUnfinished] = uid, backup, backup
	marked.SetAnnotations(annotations)
	// The Garden is marked as unfinished from the start. FieldManager owns its declaration as well,
	// so that it stays when FinishGardenRestore applies fewer fields.
	if err := c.applyGarden(ctx, marked, managerRecovery); err != nil {
		return err
	}
	return c.applyGarden(ctx, garden, FieldManager)
}

// FinishGardenRestore restores the credentials of the Garden if it has none, and allows its
// reconciliation.
func (c *Converger) FinishGardenRestore(ctx context.Context, backup, uid string, credentials map[string]any) error {
	live, err := c.LiveGarden(ctx)
	if err != nil {
		return err
	}
	if live == nil {
		return errors.New("the Garden was deleted meanwhile")
	}
	ref := apply.RefOf(live)
	if known, _, _ := unstructured.NestedMap(live.Object, "status", "credentials"); len(known) == 0 && len(credentials) > 0 {
		patch := map[string]any{"status": map[string]any{"credentials": credentials}}
		if _, err := c.connections.clusters[Runtime].MergePatch(ctx, ref, patch, managerRecovery, "status"); err != nil {
			return c.connections.clusters[Runtime].Explain(ref, "write the status", err)
		}
	}
	rest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": live.GetAPIVersion(), "kind": live.GetKind()}}
	rest.SetName(live.GetName())
	rest.SetAnnotations(map[string]string{AnnotationOriginalUID: uid, AnnotationBackup: backup})
	return c.applyGarden(ctx, rest, managerRecovery)
}

func (c *Converger) applyGarden(ctx context.Context, garden *unstructured.Unstructured, manager string) error {
	if _, err := c.connections.clusters[Runtime].Dynamic().Resource(gardenResource).Apply(ctx, garden.GetName(), garden, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
		return c.connections.clusters[Runtime].Explain(apply.RefOf(garden), "create", err)
	}
	return nil
}

// EnsureNamespace creates a namespace if it does not exist.
func (c *Converger) EnsureNamespace(ctx context.Context, cluster, name string) error {
	in := c.connections.clusters[cluster]
	ref := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	_, err := in.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(ctx, object, metav1.CreateOptions{FieldManager: owner.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return in.Explain(ref, "create", err)
	}
	return nil
}

// ReferencedNames returns the names of Secrets and ConfigMaps that an object refers to.
func ReferencedNames(object *unstructured.Unstructured) map[string]bool {
	return landscapes.ReferencedNames(object.Object["spec"])
}

// OperationsBundle is the label of the operation records: without them operations would be
// repeated.
const OperationsBundle = operationsBundle
