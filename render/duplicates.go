// SPDX-License-Identifier: Apache-2.0

package render

import "fmt"

// duplicateObjects finds an object that occurs twice in one bundle.
func duplicateObjects(b Bundle) error {
	seen := map[string]Origin{}
	for _, o := range b.Objects {
		key := objectKey(o)
		if first, ok := seen[key]; ok {
			return fmt.Errorf("bundle %s: %s %s is rendered twice: %s and %s", b.Name, o.GetKind(), o.GetName(), first, o.Origin)
		}
		seen[key] = o.Origin
	}
	return nil
}

// duplicateBundles finds bundle names that two components of an owner use.
func duplicateBundles(bundles []Bundle) []error {
	var out []error
	seen := map[string]string{}
	for _, b := range bundles {
		if other, ok := seen[b.Name]; ok {
			out = append(out, fmt.Errorf("bundle %s is defined by component %s and by %s", b.Name, other, b.Component))
		}
		seen[b.Name] = b.Component
	}
	return out
}

// duplicateObjectsAcrossBundles finds objects that several bundles bring to the same cluster. Such
// bundles would overwrite each other forever, and removing one would delete the object. The API
// version does not matter. It compares either bundles of one owner or bundles of different owners.
func duplicateObjectsAcrossBundles(bundles []Bundle, clusterOf func(Bundle) string, ofOneOwner bool) []error {
	type place struct {
		bundle Bundle
		origin Origin
	}
	seen := map[[5]string]place{}
	var out []error
	for _, b := range bundles {
		cluster := clusterOf(b)
		for _, o := range b.Objects {
			gvk := o.GroupVersionKind()
			key := [5]string{cluster, gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName()}
			first, ok := seen[key]
			if !ok {
				seen[key] = place{b, o.Origin}
				continue
			}
			oneOwner := first.bundle.Owner.String() == b.Owner.String()
			if oneOwner == ofOneOwner && first.bundle.ID() != b.ID() {
				out = append(out, fmt.Errorf("cluster %s: %s %s is rendered by %s, bundle %s (%s) and by %s, bundle %s (%s): render it in only one of them",
					cluster, gvk.Kind, nameOf(o), first.bundle.Owner, first.bundle.Name, first.origin, b.Owner, b.Name, o.Origin))
			}
		}
	}
	return out
}

// duplicateBundleNames finds bundles of different owners with the same name in one namespace of a
// cluster. They would share one ManagedResource and one folder of the render.
func duplicateBundleNames(bundles []Bundle, clusterOf func(Bundle) string) []error {
	seen := map[[3]string]Bundle{}
	var out []error
	for _, b := range bundles {
		key := [3]string{clusterOf(b), b.Namespace, b.Name}
		if first, ok := seen[key]; ok && first.Owner.String() != b.Owner.String() {
			out = append(out, fmt.Errorf("cluster %s: bundle %s in namespace %s belongs to %s (component %s) and to %s (component %s)",
				key[0], b.Name, b.Namespace, first.Owner, first.Component, b.Owner, b.Component))
			continue
		}
		seen[key] = b
	}
	return out
}

func nameOf(o Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns + "/" + o.GetName()
	}
	return o.GetName()
}
