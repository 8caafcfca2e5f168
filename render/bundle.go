// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Cluster roles that a bundle can be rendered for.
const (
	ClusterRuntime = "runtime"
	ClusterVirtual = "virtual"
	ClusterSeed    = "seed"
	ClusterShoot   = "shoot"
)

// BundleReferences is the bundle with copies of the objects that a Shoot refers to. No component
// renders it, because a render does not know their content; the reader of the objects makes it.
const BundleReferences = "referenced-resources"

// Bundle is one part of a component rendered for one owner. plan compares it, apply sends it,
// golden records it.
type Bundle struct {
	// Name is unique among the bundles of an owner, and the name of the ManagedResource.
	Name string `json:"name"`
	// Component is the folder of the catalogue that renders it, e.g. "garden/vpa".
	Component string `json:"component"`
	Owner     Owner  `json:"owner"`
	// Cluster is the role of the cluster whose API server gets the objects.
	Cluster string `json:"cluster"`
	// Namespace contains the ManagedResource or the inventory of the bundle.
	Namespace string   `json:"namespace"`
	Delivery  Delivery `json:"delivery"`
	// Condition is the care condition that includes the health of this bundle.
	Condition string   `json:"condition,omitempty"`
	Objects   []Object `json:"objects"`
	Digest    Digest   `json:"digest"`
	// Unresolved names the unknown facts: the bundle can be shown and compared, but not applied.
	Unresolved []string `json:"unresolved,omitempty"`
	// Problem is set if the bundle has no objects because its chart cannot be pulled or rendered.
	// Objects that were applied before stay unchanged.
	Problem string `json:"problem,omitempty"`
}

// Delivery describes how a bundle gets to its cluster.
type Delivery struct {
	// Direct bundles are applied by the owner's controller; all others are wrapped into a
	// ManagedResource that the resource-manager of Class reconciles.
	Direct bool `json:"direct,omitempty"`
	// Class is spec.class of the ManagedResource; empty is the default class,
	// whose target is the virtual garden or the shoot.
	Class        string            `json:"class,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	InjectLabels map[string]string `json:"injectLabels,omitempty"`
	KeepObjects  bool              `json:"keepObjects,omitempty"`
	// ServedBy is the Deployment in the namespace of the control plane that serves the webhooks of
	// the bundle. The bundle is not applied until a pod of the Deployment is ready.
	ServedBy string `json:"servedBy,omitempty"`
}

// Object is one rendered object and its origin.
type Object struct {
	*unstructured.Unstructured
	Origin Origin `json:"-"`
}

// UnmarshalJSON reads an object as the MarshalJSON of the embedded type writes it.
func (o *Object) UnmarshalJSON(data []byte) error {
	o.Unstructured = &unstructured.Unstructured{}
	return o.Unstructured.UnmarshalJSON(data)
}

// MarshalJSON adds the origins of the objects, in their order.
func (b Bundle) MarshalJSON() ([]byte, error) {
	type fields Bundle
	origins := make([]Origin, 0, len(b.Objects))
	for _, o := range b.Objects {
		origins = append(origins, o.Origin)
	}
	return json.Marshal(struct {
		fields
		Origins []Origin `json:"origins"`
	}{fields(b), origins})
}

// Origin is the source of an object: a file of the catalogue or of the landscape, with a line if
// the engine knows it.
type Origin struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Overlay names the overlays that changed or added the object, in order.
	Overlay string `json:"overlay,omitempty"`
}

func (o Origin) withOverlay(by string) Origin {
	if o.Overlay != "" {
		by = o.Overlay + ", " + by
	}
	o.Overlay = by
	return o
}

func (o Origin) String() string {
	s := o.File
	if o.Line > 0 {
		s = fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	if o.Overlay != "" {
		s += " overlaid by " + o.Overlay
	}
	return s
}

// Digest identifies the content of a bundle. Symbolic is set if facts were symbolic (golden files,
// diffs before a merge), Resolved if all were known.
type Digest struct {
	Symbolic string `json:"symbolic,omitempty"`
	Resolved string `json:"resolved,omitempty"`
}

// Owner names the Garden, Seed or Shoot that components are rendered for.
type Owner struct {
	// Kind is garden, seed or shoot: the folder of the catalogue.
	Kind string `json:"kind"`
	// Namespace is the namespace of the declaration; it is empty for cluster-scoped owners.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// ControlPlaneNamespace is the namespace of the owner's components: "garden" for Garden and
	// Seed, shoot--<project>--<shoot> for a Shoot.
	ControlPlaneNamespace string `json:"controlPlaneNamespace"`
}

func (o Owner) String() string {
	if o.Namespace != "" {
		return o.Kind + " " + o.Namespace + "/" + o.Name
	}
	return o.Kind + " " + o.Name
}

// Path is the name of an owner in flags: "seed/local", "shoot/garden-local/local".
func (o Owner) Path() string { return path.Join(o.Kind, o.Namespace, o.Name) }

// HasName reports whether name means the owner ("shoot/garden-local/local", "shoot
// garden-local/local", "shoot/local", "shoot local") or its kind ("shoot").
func (o Owner) HasName(name string) bool {
	return slices.Contains([]string{o.Path(), o.String(), o.Kind + "/" + o.Name, o.Kind + " " + o.Name, o.Kind}, name)
}

// ID is the stable identity of a bundle across revisions.
func (b Bundle) ID() string {
	return b.Owner.String() + "/" + b.Name
}

// sortBundles orders bundles by component and name, so that output does not depend on the order of
// evaluation.
func sortBundles(bundles []Bundle) {
	sort.Slice(bundles, func(i, j int) bool {
		a, b := bundles[i], bundles[j]
		if a.Component != b.Component {
			return a.Component < b.Component
		}
		return a.Name < b.Name
	})
}
