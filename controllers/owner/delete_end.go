package owner

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/namespacepolicies"
	"github.com/pergola-dev/pergola/controllers/owner/finalizers"
	"github.com/pergola-dev/pergola/secrets"
)

// What of a Garden is in no bundle goes in the end: generated Secrets, the access that was made of them, copies that nobody refers to, and what its resource
// manager has made and could not take back.

// labelService is on the NetworkPolicies that resource managers make for Services (upstream's).
const labelService = "networking.resources.gardener.cloud/service-name"

// removeSecrets deletes them.
func (t *teardown) removeSecrets(ctx context.Context) error {
	local, namespace := t.owner.Local, t.owner.ControlPlane()
	client, err := kubernetes.NewForConfig(local.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", local.Name(), err)
	}
	names, err := secrets.DeleteAll(ctx, secrets.NewStore(client), namespace, kinds[t.owner.Input.Owner.Kind].identity)
	if err != nil {
		return local.Explain(apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace}, "delete generated", err)
	}
	for _, name := range names {
		t.count(apply.ObjectResult{Ref: apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}, Action: apply.Deleted, Cluster: local.Name()})
	}
	objects, err := metadata.NewForConfig(local.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", local.Name(), err)
	}
	core := func(plural string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: plural}
	}
	policies := schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	any := func(metav1.PartialObjectMetadata) bool { return true }
	return errors.Join(
		t.sweep(ctx, objects, core("secrets"), namespace, labels.Set{labelCopy: "true"}.String(), any),
		t.sweep(ctx, objects, core("configmaps"), namespace, labels.Set{labelCopy: "true"}.String(), any),
		t.sweep(ctx, objects, core("secrets"), namespace, "", func(o metav1.PartialObjectMetadata) bool { return access.IsPublished(o.Name, o.Labels) }),
		t.sweep(ctx, objects, policies, "", labelService, any),
		// An operator that is at work deletes its own when the Garden is gone, and not before.
		t.sweep(ctx, objects, policies, "", labels.Set{namespacepolicies.LabelMadeBy: namespacepolicies.ByOperator}.String(), any),
	)
}

// sweep deletes the objects of a resource that have labels and are meant.
func (t *teardown) sweep(ctx context.Context, client metadata.Interface, gvr schema.GroupVersionResource, namespace, selector string, meant func(metav1.PartialObjectMetadata) bool) error {
	local := t.owner.Local
	list, err := client.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("cluster %s: looking for %s that are left: %w", local.Name(), gvr.Resource, err)
	}
	var problems []error
	for i := range list.Items {
		item := list.Items[i]
		if !meant(item) || item.DeletionTimestamp != nil {
			continue
		}
		err := client.Resource(gvr).Namespace(item.Namespace).Delete(ctx, item.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &item.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			problems = append(problems, fmt.Errorf("cluster %s: deleting %s %s/%s: %w", local.Name(), gvr.Resource, item.Namespace, item.Name, err))
		}
	}
	return errors.Join(problems...)
}

// letGo ends the deletion: nothing is left in the inventories, what the Garden referred to is not kept any more, and neither is the Garden.
func (t *teardown) letGo(ctx context.Context) error {
	o := t.owner
	left, err := t.orphans(ctx, o, nil)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		var names []string
		for _, l := range left {
			names = append(names, l.bundle.Name)
		}
		return fmt.Errorf("not all of it is gone: bundles %s have inventories yet", firstOf(names))
	}
	if err := t.yieldNamespace(ctx); err != nil {
		return err
	}
	if err := t.protect(ctx, nil, true); err != nil {
		return err
	}
	if err := t.endExtensions(ctx); err != nil {
		return err
	}
	final, cancel := inTheEnd(ctx)
	defer cancel()
	if err := t.status.finish(final, nil); err != nil {
		return err
	}
	return finalizers.Change(ctx, o.Home, kinds[Garden].role, o.Ref, finalizers.Without(finalizerOperator, finalizerReference))
}

// yieldNamespace takes the labels of the Garden off its namespace, which stays.
func (t *teardown) yieldNamespace(ctx context.Context) error {
	local := t.owner.Local
	ref := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: t.owner.ControlPlane()}
	live, err := local.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return local.Explain(ref, "read", err)
	}
	owns := false
	for _, f := range live.GetManagedFields() {
		owns = owns || f.Manager == FieldManager && f.Operation == metav1.ManagedFieldsOperationApply
	}
	if !owns {
		return nil
	}
	_, err = local.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Apply(ctx, ref.Name, bare(ref), metav1.ApplyOptions{FieldManager: FieldManager})
	return local.Explain(ref, "take the Garden's labels off", err)
}
