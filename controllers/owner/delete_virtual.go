// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/render"
)

// virtualGardenUserKinds returns the kinds in a virtual garden whose objects have resources
// elsewhere. Deleting the garden would orphan these resources.
func virtualGardenUserKinds() []schema.GroupVersionKind {
	core := gardencorev1beta1.SchemeGroupVersion
	return []schema.GroupVersionKind{
		core.WithKind("Shoot"), core.WithKind("BackupEntry"), core.WithKind("BackupBucket"), core.WithKind("ControllerInstallation"),
		seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeed"), core.WithKind("Seed"),
	}
}

// verifyInterval is the time between checks for remaining objects (upstream: 5 s).
const verifyInterval = 5 * time.Second

// waitUntilUnused waits until nothing uses the virtual garden. It skips a virtual garden that never
// existed or no longer exists.
func (s *flowSteps) waitUntilUnused(ctx context.Context, report func(flow.State, string)) error {
	why, err := s.virtualMissingReason(ctx)
	if err != nil {
		return err
	}
	for why == "" {
		problem := s.checkVirtualUnused(ctx)
		if problem == nil {
			break
		}
		if silent := new(unreachableGardenError); errors.As(problem, &silent) && isTrueValue(s.live.GetAnnotations()[AnnotationForceDeletion]) {
			why = "it is abandoned (" + AnnotationForceDeletion + "): " + silent.Error()
			break
		}
		report(flow.Running, strings.Join(apply.Problems(problem), "; "))
		if !s.run.sleep(ctx, verifyInterval) {
			return problem
		}
	}
	if why != "" {
		s.skipVirtualGarden(why)
	}
	s.stopMaintenance()
	return nil
}

// virtualMissingReason returns why the virtual garden cannot be read: its API server or its etcd
// does not exist, or it never had objects.
func (s *flowSteps) virtualMissingReason(ctx context.Context) (string, error) {
	if !slices.ContainsFunc(s.existingBundles, func(o orphan) bool { return o.bundle.Cluster == render.ClusterVirtual }) {
		return reasonNeverUsed, nil
	}
	namespace := s.run.owner.ControlPlane()
	for _, ref := range []apply.Ref{
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: "virtual-garden-kube-apiserver"},
		{APIVersion: "druid.gardener.cloud/v1alpha1", Kind: "Etcd", Namespace: namespace, Name: "virtual-garden-etcd-main"},
	} {
		_, err := s.run.owner.Local.GetLive(ctx, ref)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			return ref.String() + " does not exist", nil
		case err != nil:
			return "", s.run.owner.Local.Explain(ref, "read", err)
		}
	}
	return "", nil
}

// reasonNeverUsed is the reason to skip a virtual garden without objects of the Garden.
const reasonNeverUsed = "it has no objects of the Garden"

// unreachableGardenError means that the virtual garden does not answer.
type unreachableGardenError struct{ err error }

func (e *unreachableGardenError) Error() string { return e.err.Error() }
func (e *unreachableGardenError) Unwrap() error { return e.err }

// checkVirtualUnused returns an error with the objects in the virtual garden that others have to
// delete first, or with the reason why they are unknown.
func (s *flowSteps) checkVirtualUnused(ctx context.Context) error {
	o := s.run.owner
	if o.Target == nil {
		return &unreachableGardenError{s.unknownUsersError(errors.New("there is no access to it"))}
	}
	if err := apiServerHealthy(ctx, o.Target); err != nil {
		return &unreachableGardenError{s.unknownUsersError(o.Target.Explain(apply.Ref{}, "read /healthz", err))}
	}
	var found []string
	for _, gvk := range virtualGardenUserKinds() {
		mapping, err := o.Target.Mapping(ctx, gvk)
		if apply.IsUnserved(err) {
			continue
		}
		ref := apply.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
		var list *unstructured.UnstructuredList
		if err == nil {
			list, err = o.Target.Dynamic().Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: 500})
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return &unreachableGardenError{s.unknownUsersError(o.Target.Explain(ref, "list", err))}
		}
		var names []string
		for _, item := range list.Items {
			names = append(names, strings.TrimPrefix(item.GetNamespace()+"/"+item.GetName(), "/"))
		}
		if len(names) > 0 {
			found = append(found, fmt.Sprintf("%ss %s", gvk.Kind, firstNames(names)))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("the virtual garden is in use: it has %s; delete these first, then the deletion of the Garden continues", strings.Join(found, "; "))
}

func (s *flowSteps) unknownUsersError(err error) error {
	return fmt.Errorf("cannot list Seeds and Shoots in the virtual garden: %w; nothing is deleted until it answers; if it is lost for good: %s", err,
		s.run.owner.ObjectCluster.RewriteKubectlOrNameCluster(fmt.Sprintf("kubectl annotate %s %s=true", apply.KubectlName(s.run.owner.Ref), AnnotationForceDeletion)))
}

// skipVirtualGarden records that the virtual garden is skipped from now on, and why.
func (s *flowSteps) skipVirtualGarden(why string) {
	s.run.mu.Lock()
	s.virtualLoss = why
	s.run.mu.Unlock()
	if why != reasonNeverUsed {
		s.addReportNote("the virtual garden is skipped: " + why)
	}
}

func (s *flowSteps) virtualLossReason() string {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.virtualLoss
}

// forgetVirtualCluster forgets the virtual garden once its API server is deleted.
func (s *flowSteps) forgetVirtualCluster(context.Context) error {
	s.run.reconciler.Tokens.Stop(s.run.owner.ControlPlane())
	if s.run.owner.Target != nil {
		s.run.reconciler.Engine.ForgetCluster(s.run.owner.Target)
	}
	return nil
}

// Classes of ManagedResources: with objects in the virtual garden, and in the runtime cluster.
const (
	virtualClass = ""
	runtimeClass = "seed"
)

// waitForManagedResources waits until no ManagedResource of a class exists. With own it ignores
// those of bundles whose deletion comes later.
func waitForManagedResources(class string, own bool) func(*flowSteps, context.Context, func(flow.State, string)) error {
	return func(s *flowSteps, ctx context.Context, report func(flow.State, string)) error {
		said := ""
		for {
			others, err := s.managedResourcesOfClass(ctx, class, own)
			if err != nil {
				return err
			}
			if len(others) == 0 {
				return nil
			}
			text := fmt.Sprintf("ManagedResources of others exist, and nothing could delete their objects later: %s; delete them", firstNames(others))
			if text != said {
				said = text
				report(flow.Running, text)
			}
			if !s.run.sleep(ctx, verifyInterval) {
				return errors.New(text)
			}
		}
	}
}

// managedResourcesOfClass returns the names of the ManagedResources of a class. If the virtual
// garden is lost, it releases those that are being deleted: no one can or has to delete their
// objects.
func (s *flowSteps) managedResourcesOfClass(ctx context.Context, class string, own bool) ([]string, error) {
	local := s.run.owner.Local
	gvk := resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource")
	mapping, err := local.Mapping(ctx, gvk)
	if apply.IsUnserved(err) {
		return nil, nil
	}
	ref := apply.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
	namespace := ""
	if class == virtualClass {
		namespace = s.run.owner.ControlPlane()
	}
	var list *unstructured.UnstructuredList
	if err == nil {
		list, err = local.Dynamic().Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	}
	if err != nil {
		return nil, local.Explain(ref, "list", err)
	}
	ours := map[apply.Ref]bool{}
	for _, o := range s.existingBundles {
		ours[bundleManagedResourceRef(o.bundle)] = own && !o.bundle.Delivery.Direct
	}
	rm := &managedresource.Reconciler{Engine: s.run.reconciler.Engine, Source: local, Target: local, Clock: s.run.reconciler.Clock}
	var out []string
	for i := range list.Items {
		mr := &list.Items[i]
		of, _, _ := unstructured.NestedString(mr.Object, "spec", "class")
		if of == resourcesv1alpha1.ClassDefault {
			of = ""
		}
		if of != class || ours[apply.RefOf(mr)] {
			continue
		}
		if class == virtualClass && s.virtualLossReason() != "" && mr.GetDeletionTimestamp() != nil {
			if _, err := rm.ReleaseObjects(ctx, mr.GetNamespace(), mr.GetName()); err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, mr.GetNamespace()+"/"+mr.GetName())
	}
	return out, nil
}
