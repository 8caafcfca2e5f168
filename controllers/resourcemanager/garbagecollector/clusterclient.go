// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// maxListAttempts is how often a list with an expired continue token is started.
const maxListAttempts = 3

// servedKind is a served kind and its resource.
type servedKind struct {
	schema.GroupVersionKind
	gvr schema.GroupVersionResource
}

// clusterClient is the target, always read live: a deletion needs newer data than a cache has.
type clusterClient struct {
	discovery rest.Interface
	metadata  metadata.Interface
	objects   dynamic.Interface
	pageSize  int64
}

func newClusterClient(config *rest.Config, pageSize int64) (*clusterClient, error) {
	d, errDiscovery := discovery.NewDiscoveryClientForConfig(config)
	m, errMetadata := metadata.NewForConfig(config)
	w, errWhole := dynamic.NewForConfig(config)
	if err := errors.Join(errDiscovery, errMetadata, errWhole); err != nil {
		return nil, err
	}
	return &clusterClient{discovery: d.RESTClient(), metadata: m, objects: w, pageSize: pageSize}, nil
}

// servedKinds returns the kinds that the API server serves, according to its API groups. A 404 is
// an error, because a proxy may send it. Upstream takes it for the absence of the kind, which then
// protects nothing.
func (c *clusterClient) servedKinds(ctx context.Context, want []schema.GroupVersionKind) ([]servedKind, error) {
	groups := &metav1.APIGroupList{}
	if err := c.discovery.Get().AbsPath("/apis").Do(ctx).Into(groups); err != nil {
		return nil, fmt.Errorf("reading the API groups: %w", err)
	}
	versions := map[string]bool{"v1": true}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			versions[version.GroupVersion] = true
		}
	}
	resources := map[string]*metav1.APIResourceList{}
	var out []servedKind
	for _, gvk := range want {
		gv := gvk.GroupVersion().String()
		if !versions[gv] {
			continue
		}
		if resources[gv] == nil {
			path := "/apis/" + gv
			if gvk.Group == "" {
				path = "/api/" + gv
			}
			list := &metav1.APIResourceList{}
			if err := c.discovery.Get().AbsPath(path).Do(ctx).Into(list); err != nil {
				return nil, fmt.Errorf("reading the kinds of %s: %w", gv, err)
			}
			resources[gv] = list
		}
		for _, r := range resources[gv].APIResources {
			if r.Kind == gvk.Kind && !strings.Contains(r.Name, "/") {
				out = append(out, servedKind{gvk, gvk.GroupVersion().WithResource(r.Name)})
			}
		}
	}
	return out, nil
}

// hasMissingKind reports whether a kind is no longer served.
func hasMissingKind(before, now []servedKind) bool {
	return slices.ContainsFunc(before, func(k servedKind) bool { return !slices.Contains(now, k) })
}

// listPage is one response of a list.
type listPage interface {
	GetContinue() string
	GetRemainingItemCount() *int64
}

// listPages reads a list to its end. Without a resource version, the API server answers as
// consistently as it can. Pages may come twice.
func listPages(limit int64, options metav1.ListOptions, list func(metav1.ListOptions) (listPage, error)) error {
	options.Limit = limit
	var err error
	for range maxListAttempts {
		options.Continue = ""
		for {
			var p listPage
			if p, err = list(options); err != nil {
				break
			}
			if options.Continue = p.GetContinue(); options.Continue != "" {
				continue
			}
			if rest := p.GetRemainingItemCount(); rest != nil && *rest > 0 {
				return fmt.Errorf("the list ends %d objects early", *rest)
			}
			return nil
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return err
		}
	}
	return err
}

// forEachNamespace calls do for each namespace, or once for all namespaces if none is given.
func forEachNamespace(namespaces []string, do func(namespace string) error) error {
	if len(namespaces) == 0 {
		return do(metav1.NamespaceAll)
	}
	for _, namespace := range namespaces {
		if err := do(namespace); err != nil {
			return err
		}
	}
	return nil
}

// visitMetadata visits the metadata of all objects of a resource.
func (c *clusterClient) visitMetadata(ctx context.Context, resource schema.GroupVersionResource, namespaces []string, options metav1.ListOptions, visit func(*metav1.PartialObjectMetadata)) error {
	return forEachNamespace(namespaces, func(namespace string) error {
		err := listPages(c.pageSize, options, func(options metav1.ListOptions) (listPage, error) {
			list, err := c.metadata.Resource(resource).Namespace(namespace).List(ctx, options)
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				visit(&list.Items[i])
			}
			return list, nil
		})
		if err != nil {
			return fmt.Errorf("listing %s%s: %w", resource.GroupResource(), inNamespace(namespace), err)
		}
		return nil
	})
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

// resourceOf returns the resource of a collected kind.
func resourceOf(kind string) schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource(kind + "s")
}

// listCollectable returns the labelled Secrets and ConfigMaps that are not being deleted.
func (c *clusterClient) listCollectable(ctx context.Context, namespaces []string) (map[objectID]deletionCandidate, error) {
	selector := labels.Set{resourcesv1alpha1.GarbageCollectableReference: resourcesv1alpha1.GarbageCollectableReferenceTrue}.String()
	out := map[objectID]deletionCandidate{}
	for _, kind := range []string{kindSecret, kindConfigMap} {
		err := c.visitMetadata(ctx, resourceOf(kind), namespaces, metav1.ListOptions{LabelSelector: selector}, func(m *metav1.PartialObjectMetadata) {
			if m.DeletionTimestamp == nil {
				out[objectID{kind, m.Namespace, m.Name, m.UID}] = deletionCandidate{resourceVersion: m.ResourceVersion, created: m.CreationTimestamp.Time}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addReferences adds the references of all objects of a kind.
func (c *clusterClient) addReferences(ctx context.Context, k servedKind, namespaces []string, to references) error {
	return c.visitMetadata(ctx, k.gvr, namespaces, metav1.ListOptions{}, func(m *metav1.PartialObjectMetadata) { to.add(m.Namespace, m.Annotations) })
}

// findUsed reads all objects of a namespace again, in full. It returns the candidates that are in
// use, each with one user.
func (c *clusterClient) findUsed(ctx context.Context, want []schema.GroupVersionKind, before []servedKind, namespace string, candidates map[objectID]deletionCandidate) (map[objectID]string, error) {
	served, err := c.servedKinds(ctx, want)
	if err != nil {
		return nil, err
	}
	if hasMissingKind(before, served) {
		return nil, errors.New("API kinds that may refer to objects disappeared during the scan: nothing is deleted until the next scan")
	}
	names := map[string][]objectID{}
	for id := range candidates {
		names[id.name] = append(names[id.name], id)
	}
	out := map[objectID]string{}
	for _, k := range served {
		visit := func(o *unstructured.Unstructured) {
			by := k.Kind + " " + o.GetName()
			annotated := references{}
			annotated.add(namespace, o.GetAnnotations())
			for id := range candidates {
				if annotated.has(id) {
					out[id] = by
				}
			}
			findNames(o.Object["spec"], names, func(id objectID) { out[id] = by })
		}
		err := listPages(max(c.pageSize/5, 1), metav1.ListOptions{}, func(options metav1.ListOptions) (listPage, error) {
			list, err := c.objects.Resource(k.gvr).Namespace(namespace).List(ctx, options)
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				visit(&list.Items[i])
			}
			return list, nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing %s%s before deleting: %w", k.gvr.GroupResource(), inNamespace(namespace), err)
		}
	}
	return out, nil
}

// deleteIfUnchanged deletes an object unless it changed, and reports whether it did.
func (c *clusterClient) deleteIfUnchanged(ctx context.Context, id objectID, o deletionCandidate) (bool, error) {
	err := c.metadata.Resource(resourceOf(id.kind)).Namespace(id.namespace).Delete(ctx, id.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &id.uid, ResourceVersion: &o.resourceVersion},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deleting the %s %s/%s: %w", id.kind, id.namespace, id.name, err)
	}
	return true, nil
}
