// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// warnOfChanges warns of unintended side effects on objects of the component, compared with their
// previous state.
func (c *overlayCheck) warnOfChanges(k kustomization, made, before []Object) {
	type fault struct {
		at      schemas.Position
		message string
	}
	said, everywhere := map[fault]bool{}, map[string]bool{}
	for _, o := range made {
		i, err := strconv.Atoi(o.GetAnnotations()[indexAnnotation])
		if err != nil || i >= len(before) {
			continue
		}
		former := before[i]
		for _, wrong := range breakingChanges(former, o) {
			if everywhere[wrong.Path.String()] {
				continue // one object is enough
			}
			at, by, ok := c.faultyPart(k, o, wrong, func(o Object, _ []Object) bool {
				return slices.ContainsFunc(breakingChanges(former, o), func(f structure.Finding) bool {
					return f.Path.String() == wrong.Path.String() && f.Message == wrong.Message
				})
			})
			if !ok {
				continue
			}
			if by.patch >= 0 && len(k.targetedPatches) == len(k.Patches) && wrong.Type == string(typeLostArgument) && (k.targetedPatches[by.patch].node.Kind != yamlv3.SequenceNode || hasArgumentRemoval(k.targetedPatches[by.patch].node)) {
				continue // it is intended, or reported with the list that a merge replaces
			}
			if by.isGlobal() {
				everywhere[wrong.Path.String()] = true
				// commonLabels was converted to this
				if slices.ContainsFunc(k.Labels, func(l types.Label) bool { return l.IncludeSelectors }) {
					wrong.Message += "; write labels: [{pairs: {…}, includeTemplates: true}], which does not change selectors"
				}
			}
			f := objectFinding(at, o.Unstructured, wrong)
			f.rule, f.warning = ruleOverlayReference, true
			if key := (fault{at, f.message}); !said[key] {
				said[key] = true
				c.warn(f)
			}
		}
	}
}

// typeLostArgument is the type of findings about lost arguments.
const typeLostArgument = schemas.TypeRequired

// hasArgumentRemoval reports whether a list of operations removes an argument.
func hasArgumentRemoval(operations *yamlv3.Node) bool {
	return slices.ContainsFunc(operations.Content, func(item *yamlv3.Node) bool {
		_, op := childNode(item, "op")
		_, at := childNode(item, "path")
		return op != nil && at != nil && op.Value == "remove" && (strings.Contains(at.Value, "/args") || strings.Contains(at.Value, "/command"))
	})
}

// flagNames are the names of the flags of a container.
func flagNames(container map[string]any) (names []string) {
	for _, field := range []string{"command", "args"} {
		items, _ := container[field].([]any)
		for _, item := range items {
			if text, _ := item.(string); strings.HasPrefix(text, "-") {
				name, _, _ := strings.Cut(text, "=")
				names = append(names, name)
			}
		}
	}
	return names
}

// breakingChanges finds lost or changed fields of an object that other objects depend on.
func breakingChanges(before, now Object) (out []structure.Finding) {
	add := func(path fieldpath.Path, typ schemas.ViolationType, format string, args ...any) {
		out = append(out, structure.Finding{Path: path, Type: string(typ), Message: fmt.Sprintf(format, args...)})
	}
	if slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}, now.GetKind()) {
		former, is := valueIn(before.Object, "spec", "selector"), valueIn(now.Object, "spec", "selector")
		if !equality.Semantic.DeepEqual(former, is) {
			add(fieldpath.Path{"spec", "selector"}, schemas.TypeForbidden, "changes, which API servers reject for existing objects: keep the selector")
		}
	}
	labels := func(path fieldpath.Path, of func(Object) map[string]string) {
		former, is := of(before), of(now)
		for _, label := range sortedKeys(former) {
			switch value, has := is[label]; {
			case !has && isTrafficLabel(label):
				add(path, schemas.TypeInvalid, "the label %s is removed: without it, the network policies of Gardener block the traffic that it allows", label)
			case has && value != former[label] && !strings.HasSuffix(label, "version"):
				add(path.Append(fieldpath.Key(label)), schemas.TypeInvalid, "the label was %q, and others may select by it: give the object another label", former[label])
			}
		}
	}
	labels(fieldpath.Path{"metadata", "labels"}, func(o Object) map[string]string { return o.GetLabels() })
	for i := range podTemplates(now.Unstructured) {
		if i >= len(podTemplates(before.Unstructured)) {
			break
		}
		labels(fieldpath.Path{"spec", "template", "metadata", "labels"}, func(o Object) map[string]string {
			return labelsIn(valueIn(podTemplates(o.Unstructured)[i], "metadata", "labels"))
		})
		for n, container := range mapsIn(valueIn(podTemplates(now.Unstructured)[i], "spec", "containers")) {
			for _, former := range mapsIn(valueIn(podTemplates(before.Unstructured)[i], "spec", "containers")) {
				if textAt(former, "name") != textAt(container, "name") {
					continue
				}
				kept := flagNames(container)
				lost := slices.DeleteFunc(flagNames(former), func(name string) bool { return slices.Contains(kept, name) })
				if args, _ := former["args"].([]any); len(lost) > 0 && (len(args) == 0 || container["args"] != nil) {
					add(fieldpath.Path{"spec", "template", "spec", "containers", n}, typeLostArgument, "the container %s loses %s, because the patch replaces the list or item; add arguments with the path …/args/-, remove them with the operation remove", textAt(container, "name"), strings.Join(firstNames(lost), ", "))
				} else if len(args) > 0 && container["args"] == nil {
					add(fieldpath.Path{"spec", "template", "spec", "containers", n}, schemas.TypeInvalid, "the container %s loses all arguments and other fields that the patch omits: remove $patch, or write the whole container", textAt(container, "name"))
				}
			}
		}
	}
	if now.GetKind() == "ConfigMap" {
		former, is := labelsIn(before.Object["data"]), labelsIn(now.Object["data"])
		for _, key := range sortedKeys(is) {
			if former[key] != is[key] && former[key] != "" {
				for _, name := range renamedKeys(former[key], is[key]) {
					add(fieldpath.Path{"data", fieldpath.Key(key)}, schemas.TypeNotSupported, "the component does not have the field %s; did you mean %q?", name[0], name[1])
				}
			}
		}
	}
	return out
}

// isTrafficLabel reports whether a label of pods allows traffic.
func isTrafficLabel(label string) bool {
	return strings.HasPrefix(label, "networking.gardener.cloud/to-") || strings.HasPrefix(label, clientLabelPrefix)
}

// renamedKeys finds new fields of a configuration whose names resemble removed ones.
func renamedKeys(before, now string) (out [][2]string) {
	var former, is any
	if yaml.Unmarshal([]byte(before), &former) != nil || yaml.Unmarshal([]byte(now), &is) != nil {
		return nil
	}
	var walk func(a, b any)
	walk = func(a, b any) {
		was, isMap := a.(map[string]any)
		has, both := b.(map[string]any)
		if !isMap || !both {
			return
		}
		var gone []string
		for name := range was {
			if _, still := has[name]; !still {
				gone = append(gone, name)
			}
		}
		slices.Sort(gone)
		for _, name := range sortedKeys(has) {
			if _, known := was[name]; known {
				walk(was[name], has[name])
			} else if meant := suggest.Closest(name, gone); meant != "" {
				out = append(out, [2]string{name, meant})
			}
		}
	}
	walk(former, is)
	return out
}
