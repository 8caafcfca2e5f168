// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/schemas"
)

// KindOperation is the kind of the files in operations/.
const KindOperation = "Operation"

// maxOperations is the largest number of files in operations/; finished ones can be removed.
const maxOperations = 1000

// Operation is a one-shot operation on an object, from a file operations/ID.yaml. It runs exactly
// once.
type Operation struct {
	// ID is the file name without its extension.
	ID string
	// File is relative to the landscape folder; Line is the line of the operation's name.
	File string
	Line int
	// ObjectPosition and OperationPosition are the places of object and operation.
	ObjectPosition, OperationPosition schemas.Position
	// Kind, Namespace and Name are the kind, the namespace and the name of the object: a Garden,
	// Seed, Shoot, ManagedSeed, Gardenlet or Project.
	Kind, Namespace, Name string
	// Operation is a value of the annotation gardener.cloud/operation, or confirm-deletion.
	Operation string
	// NotAfter is when the operation expires; it is zero for never.
	NotAfter time.Time
	// NotAfterPosition is the place of NotAfter.
	NotAfterPosition schemas.Position
	// Digest is the digest of the content: an ID identifies only one operation.
	Digest string
}

// IsExpired reports whether an operation has expired. If it has not run by then, it never does.
func (o Operation) IsExpired(now time.Time) bool {
	return !o.NotAfter.IsZero() && now.After(o.NotAfter)
}

// ExpiredOperations returns the expired ones of newOperations.
func (l *Landscape) ExpiredOperations(since *Landscape, now time.Time) []Operation {
	return slices.DeleteFunc(l.newOperations(since), func(o Operation) bool { return !o.IsExpired(now) })
}

// newOperations returns operations that are new or changed since another revision (nil: all). Older
// ones may already have run, and may remain.
func (l *Landscape) newOperations(since *Landscape) []Operation {
	before := map[string]string{}
	if since != nil {
		for _, o := range since.Operations {
			before[o.ID] = o.Digest
		}
	}
	var out []Operation
	for _, o := range l.Operations {
		if before[o.ID] != o.Digest {
			out = append(out, o)
		}
	}
	return out
}

// Object returns the name of the object, such as "Shoot garden-local/local".
func (o Operation) Object() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

const ruleOperation = "landscape/operation"

var operationIDPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)

// readOperations reads the files in operations/. Layers must not have any: they would run for each
// landscape that builds on the layer.
func (l *layer) readOperations(folder string) {
	found := 0
	for _, entry := range l.entries(folder) {
		name := path.Join(folder, entry.Name())
		report := func(typ schemas.ViolationType, format string, args ...any) {
			l.report(name, 0, 0, ruleOperation, typ, format, args...)
		}
		switch {
		case isDocumentation(entry.Name()):
			continue
		case entry.Type()&fs.ModeSymlink != 0 || !entry.Type().IsRegular():
			report(schemas.TypeForbidden, "operations/ holds only plain files, one for each operation")
			continue
		case l.folder != l.home:
			report(schemas.TypeForbidden, "operations belong to a landscape, not to a layer, which several may build on")
			continue
		case path.Ext(entry.Name()) != ".yaml":
			report(schemas.TypeNotSupported, "an operation is a file operations/ID.yaml")
			continue
		}
		if found++; found > maxOperations {
			report(schemas.TypeTooMany, "there are more than %d operations; remove those that were executed", maxOperations)
			return
		}
		if data, ok := l.readTextFile(name); ok {
			if o := l.parseOperation(name, data); o != nil {
				l.landscape.Operations = append(l.landscape.Operations, *o)
			}
		}
	}
}

// parseOperation reads one file. It reports problems and returns nil for them.
func (l *layer) parseOperation(name string, data []byte) *Operation {
	documents := splitDocuments(data)
	if len(documents) != 1 {
		l.report(name, 1, 1, ruleOperation, schemas.TypeInvalid, "the file must hold one object of kind %s, and nothing else", KindOperation)
		return nil
	}
	value, node := l.parseDocument(name, documents[0])
	if node == nil {
		return nil
	}
	object, _ := value.(map[string]any)
	p := &operationFile{layer: l, name: name, content: parsedObject{line: node.Line, column: node.Column, tree: l.lazyPositions(name, documents[0])}}
	p.checkFields(object, "", "apiVersion", "kind", "metadata", "spec")
	spec, _ := object["spec"].(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	p.checkFields(metadata, "metadata", "name")
	p.checkFields(spec, "spec", "object", "operation", "notAfter")
	id := strings.TrimSuffix(path.Base(name), ".yaml")
	sum := sha256.Sum256(data)
	o := &Operation{ID: id, File: l.relative(name), Digest: hex.EncodeToString(sum[:16])}
	if gv := "landscape.pergola.dev/v1alpha1"; object["apiVersion"] != gv {
		p.report("apiVersion", schemas.TypeNotSupported, "must be %s", gv)
	}
	if object["kind"] != KindOperation {
		p.report("kind", schemas.TypeNotSupported, "must be %s", KindOperation)
	}
	if !operationIDPattern.MatchString(id) {
		p.report("", schemas.TypeInvalid, "the name of the file is the id of the operation: up to 63 small letters, digits, - and .")
	}
	if metadata["name"] != nil && metadata["name"] != id {
		p.report("metadata.name", schemas.TypeInvalid, "must be the name of the file, %s, or be left out", id)
	}
	text, _ := spec["object"].(string)
	var problem string
	if o.Kind, o.Namespace, o.Name, problem = ParseOperationTarget(text); problem != "" {
		p.report("spec.object", schemas.TypeInvalid, "%s", problem)
	}
	o.Operation, _ = spec["operation"].(string)
	o.ObjectPosition, o.OperationPosition = p.position("spec.object"), p.position("spec.operation")
	o.Line = o.OperationPosition.Line
	if o.Operation == "" {
		p.report("spec.operation", schemas.TypeRequired, "must be set, for example to reconcile")
	} else if problem := schemas.OperationProblem(o.Kind, o.Operation); problem != "" && o.Kind != "" {
		p.report("spec.operation", schemas.TypeNotSupported, "%s", problem)
	}
	if v, set := spec["notAfter"]; set {
		at, err := time.Parse(time.RFC3339, fmt.Sprint(v))
		if err != nil {
			p.report("spec.notAfter", schemas.TypeInvalid, "must be a time such as 2026-01-31T18:00:00Z")
		}
		o.NotAfter, o.NotAfterPosition = at, p.position("spec.notAfter")
		o.NotAfterPosition.File = o.File
	}
	if p.hasProblems {
		return nil
	}
	return o
}

// ParseOperationTarget reads the name of an object that supports operations, such as "Shoot
// garden-local/local" or "Seed local".
func ParseOperationTarget(text string) (kind, namespace, name, problem string) {
	kind, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	scoped, known := schemas.KindsWithOperations()[kind]
	if !known {
		kinds := make([]string, 0)
		for k := range schemas.KindsWithOperations() {
			kinds = append(kinds, k)
		}
		slices.Sort(kinds)
		return "", "", "", fmt.Sprintf("%q names no object that has operations: write KIND NAME or KIND NAMESPACE/NAME, where KIND is one of %s", text, strings.Join(kinds, ", "))
	}
	namespace, name, found := strings.Cut(rest, "/")
	if !found {
		namespace, name = "", rest
	}
	switch {
	case name == "" || strings.ContainsAny(name, " /"):
		return "", "", "", fmt.Sprintf("%q names no object: write KIND NAME or KIND NAMESPACE/NAME", text)
	case scoped && namespace == "":
		return "", "", "", fmt.Sprintf("%q lacks the namespace: write %s NAMESPACE/%s", text, kind, name)
	case !scoped && namespace != "":
		return "", "", "", fmt.Sprintf("%q: a %s has no namespace; write %s %s", text, kind, kind, name)
	}
	return kind, namespace, name, ""
}

// operationFile reports problems of a file at their places.
type operationFile struct {
	*layer
	name        string
	content     parsedObject
	hasProblems bool
}

func (p *operationFile) position(field string) schemas.Position {
	tree := p.content.tree()
	best := schemas.Position{Line: p.content.line, Column: p.content.column}
	for step := range strings.SplitSeq(field, ".") {
		if tree = tree.child(step); tree == nil {
			return best
		}
		best = tree.position
	}
	return best
}

func (p *operationFile) report(field string, typ schemas.ViolationType, format string, args ...any) {
	p.hasProblems = true
	at := p.position(field)
	p.layer.report(p.name, at.Line, at.Column, ruleOperation, typ, format, args...)
	v := &p.violations[len(p.violations)-1]
	v.Kind, v.Name, v.Field = KindOperation, strings.TrimSuffix(path.Base(p.name), ".yaml"), field
}

// checkFields reports unknown fields.
func (p *operationFile) checkFields(object map[string]any, at string, known ...string) {
	for _, field := range sortedKeys(object) {
		if !slices.Contains(known, field) {
			p.report(strings.TrimPrefix(at+"."+field, "."), schemas.TypeForbidden, "there is no field %q; there are %s", field, strings.Join(known, ", "))
		}
	}
}
