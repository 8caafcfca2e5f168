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

// attempts is how often a list with an expired continue token is started.
const attempts = 3

// kind is a served kind and its resource.
type kind struct {
	schema.GroupVersionKind
	resource schema.GroupVersionResource
}

// cluster is the target, always read live: a deletion needs newer data than a cache has.
type cluster struct {
	discovery rest.Interface
	metadata  metadata.Interface
	whole     dynamic.Interface
	pageSize  int64
}

func newCluster(config *rest.Config, pageSize int64) (*cluster, error) {
	d, errDiscovery := discovery.NewDiscoveryClientForConfig(config)
	m, errMetadata := metadata.NewForConfig(config)
	w, errWhole := dynamic.NewForConfig(config)
	if err := errors.Join(errDiscovery, errMetadata, errWhole); err != nil {
		return nil, err
	}
	return &cluster{discovery: d.RESTClient(), metadata: m, whole: w, pageSize: pageSize}, nil
}

// served returns the kinds that the API server serves, according to its API groups. A 404 is an
// error, since a proxy may send it. Upstream takes it for the absence of the kind, which then
// protects nothing.
func (c *cluster) served(ctx context.Context, want []schema.GroupVersionKind) ([]kind, error) {
	groups := &metav1.APIGroupList{}
	if err := c.discovery.Get().AbsPath("/apis").Do(ctx).Into(groups); err != nil {
		return nil, fmt.Errorf("asking for the API groups: %w", err)
	}
	versions := map[string]bool{"v1": true}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			versions[version.GroupVersion] = true
		}
	}
	resources := map[string]*metav1.APIResourceList{}
	var out []kind
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
				return nil, fmt.Errorf("asking for the kinds of %s: %w", gv, err)
			}
			resources[gv] = list
		}
		for _, r := range resources[gv].APIResources {
			if r.Kind == gvk.Kind && !strings.Contains(r.Name, "/") {
				out = append(out, kind{gvk, gvk.GroupVersion().WithResource(r.Name)})
			}
		}
	}
	return out, nil
}

// missing reports whether a kind is no longer served.
func missing(before, now []kind) bool {
	return slices.ContainsFunc(before, func(k kind) bool { return !slices.Contains(now, k) })
}

// page is one response of a list.
type page interface {
	GetContinue() string
	GetRemainingItemCount() *int64
}

// pages reads a list to its end. Without a resource version, the API server answers as consistently
// as it can. Pages may come twice.
func pages(limit int64, options metav1.ListOptions, list func(metav1.ListOptions) (page, error)) error {
	options.Limit = limit
	var err error
	for range attempts {
		options.Continue = ""
		for {
			var p page
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

// everyNamespace calls do for each namespace, or once for all namespaces if none is given.
func everyNamespace(namespaces []string, do func(namespace string) error) error {
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

// eachMetadata visits the metadata of all objects of a resource.
func (c *cluster) eachMetadata(ctx context.Context, resource schema.GroupVersionResource, namespaces []string, options metav1.ListOptions, visit func(*metav1.PartialObjectMetadata)) error {
	return everyNamespace(namespaces, func(namespace string) error {
		err := pages(c.pageSize, options, func(options metav1.ListOptions) (page, error) {
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
			return fmt.Errorf("listing %s%s: %w", resource.GroupResource(), in(namespace), err)
		}
		return nil
	})
}

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

// resourceOf returns the resource of a collected kind.
func resourceOf(kind string) schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource(kind + "s")
}

// collectable returns the labelled Secrets and ConfigMaps that are not being deleted.
func (c *cluster) collectable(ctx context.Context, namespaces []string) (map[objectID]object, error) {
	selector := labels.Set{resourcesv1alpha1.GarbageCollectableReference: resourcesv1alpha1.GarbageCollectableReferenceTrue}.String()
	out := map[objectID]object{}
	for _, kind := range []string{kindSecret, kindConfigMap} {
		err := c.eachMetadata(ctx, resourceOf(kind), namespaces, metav1.ListOptions{LabelSelector: selector}, func(m *metav1.PartialObjectMetadata) {
			if m.DeletionTimestamp == nil {
				out[objectID{kind, m.Namespace, m.Name, m.UID}] = object{version: m.ResourceVersion, created: m.CreationTimestamp.Time}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// annotated adds the references of all objects of a kind.
func (c *cluster) annotated(ctx context.Context, k kind, namespaces []string, to references) error {
	return c.eachMetadata(ctx, k.resource, namespaces, metav1.ListOptions{}, func(m *metav1.PartialObjectMetadata) { to.add(m.Namespace, m.Annotations) })
}

// used reads all objects of a namespace again, in full. It returns the candidates that are in use,
// each with one user.
func (c *cluster) used(ctx context.Context, want []schema.GroupVersionKind, before []kind, namespace string, candidates map[objectID]object) (map[objectID]string, error) {
	served, err := c.served(ctx, want)
	if err != nil {
		return nil, err
	}
	if missing(before, served) {
		return nil, errors.New("kinds that may refer to objects went while they were looked at: nothing is deleted before they are looked at again")
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
			named(o.Object["spec"], names, func(id objectID) { out[id] = by })
		}
		err := pages(max(c.pageSize/5, 1), metav1.ListOptions{}, func(options metav1.ListOptions) (page, error) {
			list, err := c.whole.Resource(k.resource).Namespace(namespace).List(ctx, options)
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				visit(&list.Items[i])
			}
			return list, nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing %s%s before deleting: %w", k.resource.GroupResource(), in(namespace), err)
		}
	}
	return out, nil
}

// remove deletes an object unless it changed, and reports whether it did.
func (c *cluster) remove(ctx context.Context, id objectID, o object) (bool, error) {
	err := c.metadata.Resource(resourceOf(id.kind)).Namespace(id.namespace).Delete(ctx, id.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &id.uid, ResourceVersion: &o.version},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deleting the %s %s/%s: %w", id.kind, id.namespace, id.name, err)
	}
	return true, nil
}
