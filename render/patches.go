// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/api/resmap"
	kustomizeresource "sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas"
)

// patch is one patch of a kustomization: an entry may hold several.
type patch struct {
	// Patch is the entry with inline text. A strategic merge patch targets the object that it
	// names.
	types.Patch
	objectSelection
	// entry is the field of the kustomization with the patch; start is the position of its text.
	// node is its content; position is that of a part.
	entry    string
	start    schemas.Position
	node     *yamlv3.Node
	position func(*yamlv3.Node) schemas.Position
}

// objectSelection is a part of a kustomization that selects objects.
type objectSelection struct {
	at          schemas.Position
	field       string
	description string
	kind        string
	name        string
	// image is the name of a replaced image, instead of kind and name of an object.
	image   string
	matches func(resmap.ResMap) bool
}

// selectsAny returns a test for objects that a selector selects and no reject selects.
func selectsAny(s types.Selector, rejects ...*types.Selector) func(resmap.ResMap) bool {
	return func(objects resmap.ResMap) bool {
		found, err := objects.Select(s)
		for _, reject := range rejects {
			if refused, wrong := objects.Select(*reject); wrong == nil {
				found = slices.DeleteFunc(found, func(r *kustomizeresource.Resource) bool { return slices.Contains(refused, r) })
			}
		}
		return err == nil && len(found) > 0
	}
}

// patchesOf reads all patches of a kustomization in all their forms.
func patchesOf(files filesys.FileSystem, k kustomization, place func(string) string) ([]patch, findings) {
	r := patchReader{files: files, k: k, displayPath: place}
	//lint:ignore SA1019 deprecated fields are read by krusty, too
	merges, operations := k.PatchesStrategicMerge, k.PatchesJson6902
	for i, p := range merges {
		field := fmt.Sprintf("patchesStrategicMerge[%d]", i)
		// A path, or an inline patch, which has several lines or is an object in braces.
		if text := strings.TrimSpace(string(p)); strings.Contains(text, "\n") || strings.HasPrefix(text, "{") {
			r.readInline(field, field, types.Patch{Patch: string(p)})
		} else {
			r.readFile(field, field, types.Patch{Path: text})
		}
	}
	for i, p := range k.Patches {
		r.readEntry(fmt.Sprintf("patches[%d]", i), p)
	}
	for i, p := range operations {
		r.readEntry(fmt.Sprintf("patchesJson6902[%d]", i), p)
	}
	return r.out, r.problems
}

type patchReader struct {
	files       filesys.FileSystem
	k           kustomization
	displayPath func(string) string
	out         []patch
	problems    findings
}

func (r *patchReader) report(f finding) { r.problems = append(r.problems, f) }

func (r *patchReader) readEntry(field string, p types.Patch) {
	if p.Target != nil {
		if _, err := types.NewSelectorRegex(p.Target); err != nil {
			r.report(r.k.finding(field+".target", schemas.TypeInvalid, "%s", err))
			return
		}
		for _, s := range []struct{ name, text string }{{"labelSelector", p.Target.LabelSelector}, {"annotationSelector", p.Target.AnnotationSelector}} {
			if _, err := labels.Parse(s.text); err != nil {
				r.report(r.k.finding(field+".target."+s.name, schemas.TypeInvalid, "%q is not a selector such as app=web or app in (web, api): %v", s.text, err))
				return
			}
		}
	}
	switch {
	case p.Patch != "" && p.Path != "":
		r.report(r.k.finding(field, schemas.TypeForbidden, "set one of patch and path"))
	case p.Path != "":
		r.readFile(field, field+".path", p)
	case strings.TrimSpace(p.Patch) != "":
		r.readInline(field, field+".patch", p)
	default:
		r.report(r.k.finding(field, schemas.TypeRequired, "set one of patch and path"))
	}
}

// readFile reads a patch from a file beside the kustomization.
func (r *patchReader) readFile(entry, field string, p types.Patch) {
	target, problem := resolveReference(r.files, buildRoot(r.k.path), r.k.dir(), p.Path)
	if problem != "" {
		r.report(r.k.finding(field, schemas.TypeInvalid, "%s", problem))
		return
	}
	data, err := r.files.ReadFile(target)
	if err != nil {
		r.report(r.k.finding(field, schemas.TypeInvalid, "%q cannot be read", p.Path))
		return
	}
	p.Path, p.Patch = "", string(data)
	r.splitDocuments(entry, p, func(line, column int) schemas.Position {
		return schemas.Position{File: r.displayPath(target), Line: line, Column: column}
	})
}

// readInline reads an inline patch of the kustomization.
func (r *patchReader) readInline(entry, field string, p types.Patch) {
	start := r.k.position(field)
	node := resolveAlias(r.k.node(field))
	if node == nil || node.Style&(yamlv3.LiteralStyle|yamlv3.FoldedStyle) == 0 {
		r.splitDocuments(entry, p, func(int, int) schemas.Position { return start })
		return
	}
	indented := r.indentation(node)
	r.splitDocuments(entry, p, func(line, column int) schemas.Position {
		return schemas.Position{File: start.File, Line: node.Line + line, Column: indented + column}
	})
}

// indentation is that of a block of text, by its first line that is not empty.
func (r *patchReader) indentation(block *yamlv3.Node) int {
	data, err := r.files.ReadFile(r.k.path)
	if err != nil {
		return 0
	}
	lines := strings.Split(string(data), "\n")
	for i, inner := range strings.Split(block.Value, "\n") {
		if strings.TrimSpace(inner) != "" && block.Line+i < len(lines) {
			return max(0, indentation(lines[block.Line+i])-indentation(inner))
		}
	}
	return 0
}

// splitDocuments splits an entry into patches.
func (r *patchReader) splitDocuments(entry string, p types.Patch, at func(line, column int) schemas.Position) {
	found := false
	for _, doc := range splitYAML([]byte(p.Patch)) {
		var node yamlv3.Node
		if err := yamlv3.Unmarshal(doc.text, &node); err != nil {
			f := syntaxFinding("", doc.text, err)
			f.Position, f.field = at(doc.line-1+f.Line, f.Column), entry
			r.report(f)
			return
		}
		if len(node.Content) == 0 {
			continue
		}
		found = true
		top := node.Content[0]
		part := patch{Patch: p}
		part.Patch.Patch = string(doc.text)
		part.start, part.entry, part.node = at(doc.line-1+top.Line, top.Column), entry, top
		part.position = func(n *yamlv3.Node) schemas.Position { return at(doc.line-1+n.Line, n.Column) }
		part.at, part.field = part.start, entry
		if p.Target != nil {
			part.at, part.field = r.k.position(entry+".target"), entry+".target"
		}
		if problem := part.setTarget(top, doc.text); problem != "" {
			// Do not quote it: it may be secret.
			r.report(finding{Position: part.start, field: entry, kind: schemas.TypeInvalid, message: problem})
			return
		}
		r.out = append(r.out, part)
	}
	if !found {
		r.report(finding{Position: at(1, 1), field: entry, kind: schemas.TypeRequired, message: "the patch is empty"})
	}
}

// setTarget sets the target of the patch.
func (p *patch) setTarget(node *yamlv3.Node, text []byte) (problem string) {
	switch node.Kind {
	case yamlv3.SequenceNode:
		if p.Target == nil {
			return "a list of operations needs a target"
		}
		if problem := checkOperations(node); problem != "" {
			return problem
		}
		// krusty expects JSON after a leading bracket.
		operations, err := yaml.YAMLToJSON(text)
		if err != nil {
			return "this is not a list of operations"
		}
		p.Patch.Patch = string(operations)
	case yamlv3.MappingNode:
		if p.Target == nil {
			content, err := decodeObject(text)
			if err != nil {
				return "the patch is not an object"
			}
			target, problem := targetOf(content)
			if problem != "" {
				return problem
			}
			p.Target = &target
		}
	default:
		return "a patch is an object, or a list of operations"
	}
	p.description, p.kind, p.name = describeSelector(*p.Target), p.Target.Kind, p.Target.Name
	p.matches = selectsAny(*p.Target)
	return ""
}

// checkOperations checks the form of a JSON patch (RFC 6902).
func checkOperations(list *yamlv3.Node) string {
	for i, item := range list.Content {
		_, op := childNode(item, "op")
		_, at := childNode(item, "path")
		switch {
		case op == nil || at == nil:
			return fmt.Sprintf("operation %d needs op and path", i)
		case !strings.Contains(" add remove replace move copy test ", " "+op.Value+" "):
			return fmt.Sprintf("operation %d: op is one of add, remove, replace, move, copy, test", i)
		case !strings.HasPrefix(at.Value, "/") && at.Value != "":
			return fmt.Sprintf("operation %d: path is a JSON pointer such as /spec/replicas", i)
		}
	}
	return ""
}

// targetOf selects the object that a strategic merge patch names. Without a namespace it matches
// any namespace, because the components of every Shoot have their own.
func targetOf(content map[string]any) (types.Selector, string) {
	obj := unstructured.Unstructured{Object: content}
	if obj.GetAPIVersion() == "" || obj.GetKind() == "" || obj.GetName() == "" {
		return types.Selector{}, "a patch without a target names its object by apiVersion, kind and metadata.name"
	}
	gv, err := schema.ParseGroupVersion(obj.GetAPIVersion())
	if err != nil {
		return types.Selector{}, "apiVersion has the form GROUP/VERSION"
	}
	quote := regexp.QuoteMeta
	return types.Selector{ResId: resid.ResId{
		Gvk: resid.Gvk{Group: quote(gv.Group), Version: quote(gv.Version), Kind: obj.GetKind()}, Name: quote(obj.GetName()), Namespace: quote(obj.GetNamespace()),
	}}, ""
}

// describeSelector names the objects that a selector selects.
func describeSelector(s types.Selector) string {
	plain := func(text string) string { return strings.ReplaceAll(text, `\`, "") }
	parts := []string{"object"}
	if s.Kind != "" {
		parts = []string{s.Kind}
	}
	if s.Name != "" {
		parts = append(parts, fmt.Sprintf("%q", plain(s.Name)))
	}
	if s.Namespace != "" {
		parts = append(parts, "in namespace "+plain(s.Namespace))
	}
	if s.Group != "" || s.Version != "" {
		parts = append(parts, "of "+plain(strings.Trim(s.Group+"/"+s.Version, "/")))
	}
	if s.LabelSelector != "" {
		parts = append(parts, "with labels "+s.LabelSelector)
	}
	if s.AnnotationSelector != "" {
		parts = append(parts, "with annotations "+s.AnnotationSelector)
	}
	return strings.Join(parts, " ")
}

// replacementsOf reads the selections of a kustomization's replacements: sources and targets.
func replacementsOf(files filesys.FileSystem, k kustomization, place func(string) string) ([]objectSelection, findings) {
	var out []objectSelection
	var problems findings
	for i, r := range k.Replacements {
		field := fmt.Sprintf("replacements[%d]", i)
		list, at := []types.Replacement{r.Replacement}, func(inner string) schemas.Position { return k.position(field + inner) }
		if r.Path != "" {
			target, problem := resolveReference(files, buildRoot(k.path), k.dir(), r.Path)
			if problem != "" {
				problems = append(problems, k.finding(field+".path", schemas.TypeInvalid, "%s", problem))
				continue
			}
			data, err := files.ReadFile(target)
			if err == nil {
				list, err = decodeReplacements(data)
			}
			if err != nil {
				problems = append(problems, finding{Position: schemas.Position{File: place(target)}, kind: schemas.TypeInvalid, message: "this is neither a replacement nor a list of them"})
				continue
			}
			at = func(string) schemas.Position { return schemas.Position{File: place(target), Line: 1, Column: 1} }
		}
		for _, r := range list {
			if r.Source != nil {
				s := types.Selector{ResId: r.Source.ResId}
				out = append(out, objectSelection{at: at(".source"), field: field, description: describeSelector(s), kind: s.Kind, name: s.Name, matches: selectsAny(s)})
			}
			for t, target := range r.Targets {
				if target == nil || target.Select == nil {
					continue
				}
				s := *target.Select
				out = append(out, objectSelection{at: at(fmt.Sprintf(".targets[%d].select", t)), field: field, description: describeSelector(s), kind: s.Kind, name: s.Name, matches: selectsAny(s, target.Reject...)})
			}
		}
	}
	return out, problems
}

// decodeReplacements reads a file with one or several replacements.
func decodeReplacements(data []byte) ([]types.Replacement, error) {
	var list []types.Replacement
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("-")) {
		return list, yaml.UnmarshalStrict(data, &list)
	}
	var one types.Replacement
	err := yaml.UnmarshalStrict(data, &one)
	return []types.Replacement{one}, err
}
