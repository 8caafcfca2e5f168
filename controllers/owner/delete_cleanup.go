// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// Objects of a Garden that are in no bundle are deleted at the end. These are generated Secrets,
// the access made from them, unreferenced copies, and leftovers of its resource manager.

// labelService is on the NetworkPolicies that resource managers make for Services (upstream's).
const labelService = "networking.resources.gardener.cloud/service-name"

// removeSecrets deletes these objects.
func (s *flowSteps) removeSecrets(ctx context.Context) error {
	local, namespace := s.run.owner.Local, s.run.owner.ControlPlane()
	client, err := kubernetes.NewForConfig(local.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", local.Name(), err)
	}
	names, err := secrets.DeleteAll(ctx, secrets.NewStore(client), namespace, settingsByKind[s.run.owner.Input.Owner.Kind].secretsManagerIdentity)
	if err != nil {
		return local.Explain(apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace}, "delete generated", err)
	}
	for _, name := range names {
		s.run.countResults(apply.ObjectResult{Ref: apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}, Action: apply.Deleted, Cluster: local.Name()})
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
		s.deleteLabelled(ctx, objects, core("secrets"), namespace, labels.Set{labelGarbageCollectable: "true"}.String(), any),
		s.deleteLabelled(ctx, objects, core("configmaps"), namespace, labels.Set{labelGarbageCollectable: "true"}.String(), any),
		s.deleteLabelled(ctx, objects, core("secrets"), namespace, "", func(o metav1.PartialObjectMetadata) bool { return access.IsPublished(o.Name, o.Labels) }),
		s.deleteLabelled(ctx, objects, policies, "", labelService, any),
		// A running operator deletes its own policies only after the Garden no longer exists.
		s.deleteLabelled(ctx, objects, policies, "", labels.Set{namespacepolicies.LabelMadeBy: namespacepolicies.RoleOperator}.String(), any),
	)
}

// deleteLabelled deletes the objects of a resource that match selector and meant.
func (s *flowSteps) deleteLabelled(ctx context.Context, client metadata.Interface, gvr schema.GroupVersionResource, namespace, selector string, meant func(metav1.PartialObjectMetadata) bool) error {
	local := s.run.owner.Local
	list, err := client.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("cluster %s: listing remaining %s: %w", local.Name(), gvr.Resource, err)
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

// requireNoInventories fails while bundles have inventories.
func (s *flowSteps) requireNoInventories(ctx context.Context) error {
	left, err := s.run.reconciler.orphans(ctx, s.run.owner, nil)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		var names []string
		for _, l := range left {
			names = append(names, l.bundle.Name)
		}
		return fmt.Errorf("the deletion is incomplete: bundles %s still have inventories", firstNames(names))
	}
	return nil
}

// finishDeletion removes the finalizers once no inventory is left.
func (s *flowSteps) finishDeletion(ctx context.Context) error {
	if err := s.requireNoInventories(ctx); err != nil {
		return err
	}
	o := s.run.owner
	final, cancel := finalContext(ctx)
	defer cancel()
	if err := s.run.status.finish(final, nil); err != nil {
		return err
	}
	kind := settingsByKind[o.Input.Owner.Kind]
	return finalizers.Change(ctx, o.ObjectCluster, kind.fieldManager, o.Ref, finalizers.Remove(kind.finalizers...))
}

// disownNamespace removes the labels of the Garden from its namespace, which stays.
func (s *flowSteps) disownNamespace(ctx context.Context) error {
	local := s.run.owner.Local
	ref := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: s.run.owner.ControlPlane()}
	live, err := local.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return local.Explain(ref, "read", err)
	}
	if !slices.ContainsFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == FieldManager && f.Operation == metav1.ManagedFieldsOperationApply
	}) {
		return nil
	}
	_, err = local.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Apply(ctx, ref.Name, identityObject(ref), metav1.ApplyOptions{FieldManager: FieldManager})
	return local.Explain(ref, "remove the Garden's labels", err)
}
