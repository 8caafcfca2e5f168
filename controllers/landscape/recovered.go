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

// A Garden that is made anew from a backup (commands/recovery) has another UID than before, and
// things outside of its cluster are named after that one: the bucket that etcd is backed up to,
// above all. So it is kept in an annotation, and counts in the place of the own one.
const (
	// AnnotationFormerUID on a Garden is the UID that it had in the cluster that was lost.
	AnnotationFormerUID = "recovery.pergola.dev/uid"
	// AnnotationBackup names the backup that a Garden was made from.
	AnnotationBackup = "recovery.pergola.dev/backup"
	// AnnotationUnfinished is on a Garden until all of its backup is restored. It is not reconciled
	// before: CAs and keys that are not there yet would be made anew.
	AnnotationUnfinished = "recovery.pergola.dev/unfinished"
)

// managerRecovery owns these annotations.
const managerRecovery = "pergola-recovery"

// IdentityOf is the UID by which things outside of its cluster are named after an owner.
func IdentityOf(live *unstructured.Unstructured) string {
	return cmp.Or(live.GetAnnotations()[AnnotationFormerUID], string(live.GetUID()))
}

// unfinished says why a Garden must not be reconciled.
func unfinished(live *unstructured.Unstructured) error {
	backup, is := live.GetAnnotations()[AnnotationUnfinished]
	if !is {
		return nil
	}
	return fmt.Errorf("not reconciled, because backup %s is not restored completely: go on with pergola restore, with the same file", backup)
}

// DeclaredGarden is the Garden as Git declares it.
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

// LiveGarden is the only Garden of the runtime cluster; nil where there is none, or not even its
// kind.
func (c *Converger) LiveGarden(ctx context.Context) (*unstructured.Unstructured, error) {
	declared, err := c.DeclaredGarden()
	if err != nil {
		return nil, err
	}
	return LiveGarden(ctx, c.links.clusters[Runtime], declared.GetName())
}

// LiveGarden reads the Garden of a runtime cluster; nil where there is none. That it has another
// name is an error.
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

// LockFor takes the lease of whoever reconciles what is on a cluster, for as long as the converger
// is open.
func (c *Converger) LockFor(ctx context.Context, cluster string) error {
	if cluster == Runtime {
		return c.lock(ctx, Runtime, leaseOperator)
	}
	return c.lock(ctx, cluster, leaseGardenlet)
}

// WhileLeased gives a context that ends with the leases, too.
func (c *Converger) WhileLeased(ctx context.Context) (context.Context, context.CancelFunc) {
	return c.whileLeased(ctx)
}

// BeginGarden makes the Garden that Git declares, in a runtime cluster that need not know its kind
// yet, with the identity of the one that a backup is of. It is not reconciled before EndGarden.
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
	// From its first moment on it says that it is not finished. What is declared is given to whom
	// it belongs, so that EndGarden can leave it to that one.
	if err := c.sendGarden(ctx, marked, managerRecovery); err != nil {
		return err
	}
	return c.sendGarden(ctx, garden, FieldManager)
}

// EndGarden gives the Garden its credentials of before, as far as it has none, and lets it be
// reconciled.
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

// EnsureNamespace makes a namespace where there is none.
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

// ReferredNames are the names by which an object refers to Secrets and ConfigMaps.
func ReferredNames(object *unstructured.Unstructured) map[string]bool {
	return landscapes.ReferredNames(object.Object["spec"])
}

// OperationsBundle is the label of the records of executed operations: without them operations
// would be executed once more.
const OperationsBundle = operationsBundle
