// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/render"
)

// componentFile has the results of a component except its bundles.
const componentFile = "component.yaml"

// record returns one file for each bundle, with the properties of the bundle and then the objects
// in order.
func (c Case) record(result render.Result) (files map[string][]byte, origins map[string]string, err error) {
	files, origins = map[string][]byte{}, map[string]string{}
	add := func(name string, doc ...any) error {
		file := path.Join(c.component, casesFolder, c.name, name)
		var out bytes.Buffer
		for i, d := range doc {
			text, err := render.MarshalYAML(d)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if i > 0 {
				out.WriteString("---\n")
			}
			out.Write(text)
		}
		files[file] = out.Bytes()
		return nil
	}
	for _, component := range result.Components {
		if err := add(componentFile, summaryOf(component)); err != nil {
			return nil, nil, err
		}
	}
	for _, b := range result.Bundles {
		docs := []any{bundleHeader(b)}
		for _, o := range b.Objects {
			origins[b.Name+"/"+change.RefOf(o.Unstructured).String()] = o.Origin.String()
			if c.Record == recordModeDigests {
				digest, err := digestOf(o.Object)
				if err != nil {
					return nil, nil, err
				}
				docs = append(docs, digest)
				continue
			}
			docs = append(docs, o.Object)
		}
		if err := add(b.Name+".yaml", docs...); err != nil {
			return nil, nil, err
		}
	}
	return files, origins, nil
}

// summaryOf returns the results for a whole component, such as its requests for Secrets.
func summaryOf(c render.Component) map[string]any {
	out := map[string]any{"enabled": c.Enabled}
	if !c.Enabled {
		return out
	}
	if len(c.Images) > 0 {
		images := slices.Clone(c.Images)
		slices.Sort(images)
		out["images"] = images
	}
	if len(c.Secrets) > 0 {
		secrets := map[string]any{}
		for name, request := range c.Secrets {
			var content any
			if json.Unmarshal(request, &content) == nil {
				secrets[name] = content
			}
		}
		out["secrets"] = secrets
	}
	if len(c.Facts) > 0 {
		out["facts"] = c.Facts
	}
	return out
}

func bundleHeader(b render.Bundle) map[string]any {
	out := map[string]any{"bundle": b.Name, "cluster": b.Cluster, "namespace": b.Namespace, "delivery": b.Delivery}
	if b.Condition != "" {
		out["condition"] = b.Condition
	}
	if len(b.Unresolved) > 0 {
		out["unresolved"] = b.Unresolved
	}
	return out
}

// digestOf replaces an object that is not recorded itself.
func digestOf(object map[string]any) (map[string]any, error) {
	text, err := render.MarshalYAML(object)
	if err != nil {
		return nil, err
	}
	metadata, _ := object["metadata"].(map[string]any)
	kept := map[string]any{"name": metadata["name"]}
	if namespace, ok := metadata["namespace"]; ok {
		kept["namespace"] = namespace
	}
	return map[string]any{
		"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": kept, "sha256": fmt.Sprintf("%x", sha256.Sum256(text)),
	}, nil
}
