// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// checkBuilt checks objects that an overlay changed or added, as krusty made them, and finds the
// faulty part of the overlay. A later check reports faults that exist without the overlay.
func (c *overlayCheck) checkBuilt(k kustomization, objects []Object, bundles []Bundle) findings {
	minors := map[string]int{}
	for _, b := range bundles {
		minors[b.Name] = c.clusterMinor(b.Cluster)
	}
	type fault struct {
		at      schemas.Position
		message string
	}
	said, more := map[fault]int{}, map[int]int{}
	for _, o := range objects {
		minor, known := minors[o.GetAnnotations()[bundleAnnotation]]
		// with several bundles, the missing bundle is reported instead
		if !known && len(bundles) > 0 {
			minor = c.clusterMinor(bundles[0].Cluster)
		}
		for _, found := range c.checkOverlaidObject(o.Unstructured, minor) {
			at, by, ok := c.faultyPart(k, o, found, func(o Object, _ []Object) bool {
				return slices.ContainsFunc(c.checkOverlaidObject(o.Unstructured, minor), func(f structure.Finding) bool {
					return f.Path.String() == found.Path.String() && f.Message == found.Message
				})
			})
			if !ok {
				continue
			}
			if by.replacement >= 0 && found.Type == string(schemas.TypeTypeInvalid) {
				found.Message = strings.TrimSuffix(found.Message, "; put it in quotes") + "; Kustomize copies values without their quotes into fields that it creates: set this one with a patch"
			}
			f := objectFinding(at, o.Unstructured, found)
			f.rule = ruleObject
			key := fault{at, f.message}
			if first, ok := said[key]; ok && by.isGlobal() {
				more[first]++
				continue
			}
			said[key] = len(c.findings)
			c.report(f)
		}
	}
	for i, n := range more {
		c.findings[i].message += fmt.Sprintf("; %d more places in objects have the same fault", n)
	}
	return c.findings
}

// checkOverlaidObject is checkWithoutNamespace, and checks objects of Gardener against the rules
// for declarations.
func (c *overlayCheck) checkOverlaidObject(o *unstructured.Unstructured, minor int) []structure.Finding {
	found := c.checkWithoutNamespace(o, minor)
	if len(found) > 0 || !strings.HasSuffix(o.GroupVersionKind().Group, ".gardener.cloud") {
		return found
	}
	violations, err := schemas.Validate(context.Background(), []schemas.Input{{Object: o}}, schemas.Options{})
	if err != nil {
		return []structure.Finding{{Type: string(schemas.TypeInvalid), Message: err.Error()}}
	}
	for _, v := range violations {
		if v.Severity == schemas.SeverityError && v.Rule != schemas.RuleStructure && !strings.Contains(v.Message, symbolicMark) {
			found = append(found, structure.Finding{Path: fieldpath.Parse(v.Field), Type: string(v.Type), Message: fmt.Sprintf("%s (rule %s)", v.Message, v.Rule)})
		}
	}
	return found
}

// faultyPart finds the part of an overlay that makes a field wrong, and its position. is reports
// whether the field of an object is wrong, given all objects.
func (c *overlayCheck) faultyPart(k kustomization, o Object, wrong structure.Finding, is func(Object, []Object) bool) (at schemas.Position, by kustomizationPart, ok bool) {
	isWrong := func(part types.Kustomization) bool {
		resources, err := krustyBuild(c.memory, k.path, part)
		if err != nil {
			return false
		}
		objects, err := decodeResources(c.memory, k, resources, c.displayPath)
		if err != nil {
			return false
		}
		for _, other := range objects {
			index := other.GetAnnotations()[indexAnnotation]
			if index != o.GetAnnotations()[indexAnnotation] || index == "" && (other.GetKind() != o.GetKind() || other.GetName() != o.GetName()) {
				continue
			}
			return is(other, objects)
		}
		return false
	}
	by = k.firstFailingPart(isWrong)
	switch {
	case by.patch >= 0 && len(k.targetedPatches) == len(k.Patches):
		p := k.targetedPatches[by.patch]
		return p.position(patchNodeAt(resolveAlias(p.node), wrong.Path)), by, true
	case by.field != partResources:
		return k.position(by.field), by, true
	case o.GetAnnotations()[indexAnnotation] == "":
		return c.positionInFile(o, wrong), by, true
	}
	// Nested components and folders are part of the start, too.
	i, err := strconv.Atoi(o.GetAnnotations()[indexAnnotation])
	return k.position(""), by, err != nil || i >= len(c.objects) || !is(c.objects[i], c.objects)
}

// patchNodeAt is the node of a field in a patch. In a list of operations it is the last one on the
// field or on a parent.
func patchNodeAt(node *yamlv3.Node, path fieldpath.Path) *yamlv3.Node {
	if node.Kind != yamlv3.SequenceNode {
		return nodeAt(node, path)
	}
	at := node
	for _, item := range node.Content {
		_, pointer := childNode(item, "path")
		if pointer == nil {
			continue
		}
		steps := pointerSteps(pointer.Value)
		if len(steps) > len(path) || !slices.EqualFunc(steps, path[:len(steps)], func(step string, other any) bool { return step == fieldpath.StepName(other) || step == "-" }) {
			continue
		}
		at = pointer
		if _, value := childNode(item, "value"); value != nil {
			if at = nodeAt(value, path[len(steps):]); at == value && len(steps) < len(path) {
				at = pointer
			}
		}
	}
	return at
}

// positionInFile is the position of a field of an object that the overlay adds.
func (c *overlayCheck) positionInFile(o Object, wrong structure.Finding) schemas.Position {
	at := schemas.Position{File: o.Origin.File, Line: max(o.Origin.Line, 1), Column: 1}
	_ = c.memory.Walk("/overlay", func(file string, info fs.FileInfo, err error) error {
		if err != nil || info.IsDir() || c.displayPath(file) != o.Origin.File {
			return err
		}
		data, err := c.memory.ReadFile(file)
		if err != nil {
			return err
		}
		for _, doc := range splitYAML(data) {
			var node yamlv3.Node
			if doc.line == o.Origin.Line && yamlv3.Unmarshal(doc.text, &node) == nil && len(node.Content) > 0 {
				found := nodeAt(node.Content[0], wrong.Path)
				at.Line, at.Column = doc.line-1+found.Line, found.Column
			}
		}
		return nil
	})
	return at
}

// kustomizationPart is a part of a kustomization.
type kustomizationPart struct {
	field string
	// patch and replacement are indices; both are -1 for another part.
	patch, replacement int
}

// partResources is the initial part of a kustomization.
const partResources = "resources"

type globalPart struct {
	field string
	// copyPart copies the part from another kustomization.
	copyPart func(to, from *types.Kustomization)
}

// globalParts are the parts of a kustomization that change all objects or add some.
var globalParts = []globalPart{
	{"configMapGenerator", func(to, from *types.Kustomization) { to.ConfigMapGenerator = from.ConfigMapGenerator }},
	{"secretGenerator", func(to, from *types.Kustomization) { to.SecretGenerator = from.SecretGenerator }},
	{"namespace", func(to, from *types.Kustomization) { to.Namespace = from.Namespace }},
	{"namePrefix", func(to, from *types.Kustomization) { to.NamePrefix = from.NamePrefix }},
	{"nameSuffix", func(to, from *types.Kustomization) { to.NameSuffix = from.NameSuffix }},
	{"labels", func(to, from *types.Kustomization) { to.Labels = from.Labels }},
	// they are labels by now
	{"commonLabels", func(to, from *types.Kustomization) { to.Labels = from.Labels }},
	{"commonAnnotations", func(to, from *types.Kustomization) { to.CommonAnnotations = from.CommonAnnotations }},
}

func (p kustomizationPart) isGlobal() bool {
	return slices.ContainsFunc(globalParts, func(w globalPart) bool { return w.field == p.field })
}

// firstFailingPart adds the parts of a kustomization one by one and returns the first that makes it
// wrong.
func (k kustomization) firstFailingPart(isWrong func(types.Kustomization) bool) kustomizationPart {
	built := k.Kustomization
	built.Patches, built.Replacements, built.Images, built.Replicas = nil, nil, nil, nil
	if isWrong(built) {
		for _, w := range globalParts {
			w.copyPart(&built, &types.Kustomization{})
		}
		for _, w := range globalParts {
			w.copyPart(&built, &k.Kustomization)
			if k.node(w.field) != nil && isWrong(built) {
				return kustomizationPart{w.field, -1, -1}
			}
		}
		return kustomizationPart{partResources, -1, -1}
	}
	for i := range k.Patches {
		if built.Patches = k.Patches[:i+1]; isWrong(built) {
			return kustomizationPart{fmt.Sprintf("patches[%d]", i), i, -1}
		}
	}
	for i := range k.Replacements {
		if built.Replacements = k.Replacements[:i+1]; isWrong(built) {
			return kustomizationPart{fmt.Sprintf("replacements[%d]", i), -1, i}
		}
	}
	for i := range k.Images {
		if built.Images = k.Images[:i+1]; isWrong(built) {
			return kustomizationPart{fmt.Sprintf("images[%d]", i), -1, -1}
		}
	}
	for i := range k.Replicas {
		if built.Replicas = k.Replicas[:i+1]; isWrong(built) {
			return kustomizationPart{fmt.Sprintf("replicas[%d]", i), -1, -1}
		}
	}
	return kustomizationPart{"", -1, -1}
}
