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
	// AnnotationFormerUID on a Garden is its UID in the lost cluster.
	AnnotationFormerUID = "recovery.pergola.dev/uid"
	// AnnotationBackup names the backup that a Garden was restored from.
	AnnotationBackup = "recovery.pergola.dev/backup"
	// AnnotationUnfinished is on a Garden until its backup is restored completely. Reconciling it
	// before would generate the missing CAs and keys anew.
	AnnotationUnfinished = "recovery.pergola.dev/unfinished"
)

// managerRecovery owns these annotations.
const managerRecovery = "pergola-recovery"

// IdentityOf returns the UID that names resources of an owner outside of its cluster.
func IdentityOf(live *unstructured.Unstructured) string {
	return cmp.Or(live.GetAnnotations()[AnnotationFormerUID], string(live.GetUID()))
}

// unfinished returns an error if a Garden must not be reconciled.
func unfinished(live *unstructured.Unstructured) error {
	backup, is := live.GetAnnotations()[AnnotationUnfinished]
	if !is {
		return nil
	}
	return fmt.Errorf("not reconciled, because backup %s is not restored completely: go on with pergola restore, with the same file", backup)
}

// DeclaredGarden returns the Garden as Git declares it.
func (c *Converger) DeclaredGarden() (*unstructured.Unstructured, error) {
	for _, o := range split(c.landscape)[Runtime].objects {
		if o.GroupVersionKind().GroupKind() == gardenKind {
			return o.DeepCopy(), nil
		}
	}
	return nil, errors.New("the landscape declares no Garden")
}

var (
	gardenKind = schema.GroupKind{Group: "operator.gardener.cloud", Kind: "Garden"}
	gardens    = schema.GroupVersionResource{Group: "operator.gardener.cloud", Version: "v1alpha1", Resource: "gardens"}
)

// LiveGarden returns the Garden of the runtime cluster; nil if it or its kind does not exist.
func (c *Converger) LiveGarden(ctx context.Context) (*unstructured.Unstructured, error) {
	declared, err := c.DeclaredGarden()
	if err != nil {
		return nil, err
	}
	return LiveGarden(ctx, c.links.clusters[Runtime], declared.GetName())
}

// LiveGarden returns the Garden of a runtime cluster; nil if none exists. Another name is an error.
func LiveGarden(ctx context.Context, runtime *apply.Cluster, name string) (*unstructured.Unstructured, error) {
	ref := apply.Ref{APIVersion: "operator.gardener.cloud/v1alpha1", Kind: "Garden"}
	list, err := runtime.Dynamic().Resource(gardens).List(ctx, metav1.ListOptions{})
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
	return nil, fmt.Errorf("the Garden of cluster %s is %q, and the landscape declares %q", runtime.Name(), list.Items[0].GetName(), name)
}

// LockFor acquires the lease of a cluster's reconciler until the converger is closed.
func (c *Converger) LockFor(ctx context.Context, cluster string) error {
	if cluster == Runtime {
		return c.lock(ctx, Runtime, leaseOperator)
	}
	return c.lock(ctx, cluster, leaseGardenlet)
}

// WhileLeased returns a context that also ends when a lease is lost.
func (c *Converger) WhileLeased(ctx context.Context) (context.Context, context.CancelFunc) {
	return c.whileLeased(ctx)
}

// BeginGarden creates the declared Garden with the UID from a backup, and installs its CRD if
// necessary. It is not reconciled before EndGarden.
func (c *Converger) BeginGarden(ctx context.Context, backup, uid string) error {
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
	annotations[AnnotationFormerUID], annotations[AnnotationBackup], annotations[AnnotationUnfinished] = uid, backup, backup
	marked.SetAnnotations(annotations)
	// The Garden is marked as unfinished from the start. FieldManager owns its declaration as well,
	// so that it stays when EndGarden applies fewer fields.
	if err := c.sendGarden(ctx, marked, managerRecovery); err != nil {
		return err
	}
	return c.sendGarden(ctx, garden, FieldManager)
}

// EndGarden restores the credentials of the Garden if it has none, and allows its reconciliation.
func (c *Converger) EndGarden(ctx context.Context, backup, uid string, credentials map[string]any) error {
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
		if _, err := c.links.clusters[Runtime].MergePatch(ctx, ref, patch, managerRecovery, "status"); err != nil {
			return c.links.clusters[Runtime].Explain(ref, "write the status", err)
		}
	}
	rest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": live.GetAPIVersion(), "kind": live.GetKind()}}
	rest.SetName(live.GetName())
	rest.SetAnnotations(map[string]string{AnnotationFormerUID: uid, AnnotationBackup: backup})
	return c.sendGarden(ctx, rest, managerRecovery)
}

func (c *Converger) sendGarden(ctx context.Context, garden *unstructured.Unstructured, manager string) error {
	if _, err := c.links.clusters[Runtime].Dynamic().Resource(gardens).Apply(ctx, garden.GetName(), garden, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
		return c.links.clusters[Runtime].Explain(apply.RefOf(garden), "make", err)
	}
	return nil
}

// EnsureNamespace creates a namespace if it does not exist.
func (c *Converger) EnsureNamespace(ctx context.Context, cluster, name string) error {
	in := c.links.clusters[cluster]
	ref := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	_, err := in.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(ctx, object, metav1.CreateOptions{FieldManager: owner.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return in.Explain(ref, "create", err)
	}
	return nil
}

// ReferredNames returns the names of Secrets and ConfigMaps that an object refers to.
func ReferredNames(object *unstructured.Unstructured) map[string]bool {
	return landscapes.ReferredNames(object.Object["spec"])
}

// OperationsBundle is the label of the operation records: without them operations would be
// repeated.
const OperationsBundle = operationsBundle
