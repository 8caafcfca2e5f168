// SPDX-License-Identifier: Apache-2.0

package prerequisites

import (
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// PlannedPrerequisites are the kinds and namespaces that a plan creates. Objects of such kinds or
// in such namespaces cannot be dry-run, because they do not exist yet. The zero value is empty.
type PlannedPrerequisites struct {
	mu         sync.Mutex
	kinds      map[string]map[schema.GroupKind]bool
	namespaces map[string]map[string]bool
}

// Add records the kinds and namespaces that objects of a cluster define.
func (c *PlannedPrerequisites) Add(cluster string, objects ...*unstructured.Unstructured) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds == nil {
		c.kinds, c.namespaces = map[string]map[schema.GroupKind]bool{}, map[string]map[string]bool{}
	}
	if c.kinds[cluster] == nil {
		c.kinds[cluster], c.namespaces[cluster] = map[schema.GroupKind]bool{}, map[string]bool{}
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "CustomResourceDefinition":
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			c.kinds[cluster][schema.GroupKind{Group: group, Kind: kind}] = true
		case "Namespace":
			c.namespaces[cluster][o.GetName()] = true
		}
	}
}

// AddNamespaces records namespaces that are created outside bundles.
func (c *PlannedPrerequisites) AddNamespaces(cluster string, names ...string) {
	for _, name := range names {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": "Namespace"}}
		o.SetName(name)
		c.Add(cluster, o)
	}
}

// isPrerequisiteError reports whether an object failed only because the plan has yet to create its
// kind or namespace.
func (c *PlannedPrerequisites) isPrerequisiteError(e *apply.ObjectError) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var status apierrors.APIStatus
	switch {
	case e.Object == (apply.Ref{}):
		return false
	case c.kinds[e.Cluster][e.Object.GroupKind()] && e.Reason == apply.ReasonKindNotServed:
		return true
	case c.namespaces[e.Cluster][e.Object.Namespace] && e.Reason == apply.ReasonNotFound && errors.As(e.Err, &status):
		details := status.Status().Details
		return details != nil && details.Kind == "namespaces"
	}
	return false
}

// ResolveErrors turns items that failed for such a reason into creations, and returns the other
// errors.
func (c *PlannedPrerequisites) ResolveErrors(items []change.Item, err error) error {
	var all apply.Errors
	if c == nil || !errors.As(err, &all) {
		return err
	}
	var rest apply.Errors
	explained := map[apply.Ref]bool{}
	for _, e := range all {
		if c.isPrerequisiteError(e) {
			explained[e.Object] = true
		} else {
			rest = append(rest, e)
		}
	}
	for i := range items {
		if items[i].Action == change.Fail && explained[items[i].Object] {
			items[i].Action, items[i].Reason = change.Create, ""
		}
	}
	switch {
	case len(explained) == 0:
		return err
	case len(rest) == 0:
		return nil
	}
	return rest
}
