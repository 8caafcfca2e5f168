// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"path"
	"sort"
	"strings"
)

// BundleFiles returns bundles as golden files and `render --output-dir` have them:
// <cluster>/<namespace>/<bundle>/<kind>-<name>.yaml, one object per file, and bundle.yaml for the
// bundle as a whole. clusterOf names the cluster of a bundle (a seed has its own name). All Shoots
// share the folder of their role: namespaces of control planes distinguish them.
func BundleFiles(bundles []Bundle, clusterOf func(Bundle) string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, b := range bundles {
		cluster := clusterOf(b)
		if b.Cluster == ClusterShoot {
			cluster = ClusterShoot
		}
		dir := path.Join(cluster, b.Namespace, b.Name)
		if _, ok := files[path.Join(dir, "bundle.yaml")]; ok {
			return nil, fmt.Errorf("bundle %s: another bundle is written to %s, too", b.ID(), dir)
		}
		meta := struct {
			Name       string   `json:"name"`
			Component  string   `json:"component"`
			Owner      string   `json:"owner"`
			Namespace  string   `json:"namespace"`
			Delivery   Delivery `json:"delivery"`
			Condition  string   `json:"condition,omitempty"`
			Digest     Digest   `json:"digest"`
			Unresolved []string `json:"unresolved,omitempty"`
			Objects    []string `json:"objects"`
		}{
			Name: b.Name, Component: b.Component, Owner: b.Owner.String(), Namespace: b.Namespace,
			Delivery: b.Delivery, Condition: b.Condition, Digest: b.Digest, Unresolved: b.Unresolved,
		}
		for _, o := range b.Objects {
			doc, err := MarshalYAML(o.Object)
			if err != nil {
				return nil, fmt.Errorf("bundle %s: %s %s: %w", b.ID(), o.GetKind(), o.GetName(), err)
			}
			name := path.Join(dir, ObjectFile(o))
			if _, ok := files[name]; ok {
				return nil, fmt.Errorf("bundle %s: two objects would be written to %s", b.ID(), name)
			}
			files[name] = doc
			meta.Objects = append(meta.Objects, fmt.Sprintf("%s  # %s", ObjectFile(o), o.Origin))
		}
		sort.Strings(meta.Objects)
		doc, err := MarshalYAML(meta)
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", b.ID(), err)
		}
		files[path.Join(dir, "bundle.yaml")] = doc
	}
	return files, nil
}

// ObjectFile is the file name of an object inside its bundle.
func ObjectFile(o Object) string {
	parts := []string{strings.ToLower(o.GetKind())}
	if group := strings.Split(o.GetAPIVersion(), "/"); len(group) == 2 && strings.Contains(group[0], ".") {
		parts[0] += "." + group[0]
	}
	if ns := o.GetNamespace(); ns != "" {
		parts = append(parts, ns)
	}
	parts = append(parts, o.GetName())
	return strings.NewReplacer(":", "_", "/", "_", "*", "_").Replace(strings.Join(parts, "-")) + ".yaml"
}
