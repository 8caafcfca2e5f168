// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas"
)

// parseYAML reads the objects of a YAML or JSON file.
func (l *loader) parseYAML(name string, data []byte) []Declaration {
	var contents []parsedObject
	for _, d := range splitDocuments(data) {
		value, node := l.parseDocument(name, d)
		object, ok := value.(map[string]any)
		switch {
		case node == nil:
		case !ok:
			message := "must be an object with apiVersion, kind and metadata"
			if strings.HasPrefix(node.Value, "version https://git-lfs.github.com/spec/") {
				message = "is a pointer of Git LFS, which is not supported: commit the file itself (git lfs untrack, git add --renormalize)"
			}
			l.report(name, node.Line, node.Column, "landscape/file", schemas.TypeInvalid, "%s", message)
		default:
			contents = append(contents, parsedObject{object: object, line: node.Line, column: node.Column, tree: l.lazyPositions(name, d), document: d})
		}
	}
	contents = l.decrypt(name, data, contents)
	var found []Declaration
	for _, c := range contents {
		if !c.unreadable {
			found = append(found, l.declare(name, c)...)
		}
	}
	return found
}

// parseDocument returns the content of a document and its node. It reports problems and returns nil
// for them.
func (l *loader) parseDocument(name string, d document) (any, *yaml.Node) {
	node, p := d.parse()
	if p != nil {
		if at := findJSONFault(d.data); path.Ext(name) == ".json" && at != nil {
			at.line += d.offset
			p = at
		}
		l.report(name, p.line, p.column, "landscape/file", schemas.TypeInvalid, "%s", p.message)
		return nil, nil
	}
	c := &converter{limits: l.limits, quotable: d.quotableLines()}
	value := c.convertValue(node, 0)
	for _, p := range c.problems {
		l.report(name, p.line, p.column, "landscape/file", schemas.TypeInvalid, "%s", p.message)
	}
	if len(c.problems) > 0 {
		return nil, nil
	}
	return value, node
}

// parsedObject is one object of a file with its places.
type parsedObject struct {
	object       map[string]any
	line, column int
	tree         func() *positionTree
	document     document // only for YAML files
	secret       SecretState
	sealed       map[string]any
	recipients   []string // only for encrypted files
	unreadable   bool     // the identity of the object is encrypted
}

// item returns the content of one item of a List, with the properties of the List.
func (c parsedObject) item(i int) (parsedObject, bool) {
	items, _ := c.object["items"].([]any)
	object, ok := items[i].(map[string]any)
	one := parsedObject{object: object, line: c.line, column: c.column, document: c.document, secret: c.secret, recipients: c.recipients,
		tree: sync.OnceValue(func() *positionTree { return c.tree().child("items").child(i) })}
	if place := one.tree(); place != nil {
		one.line, one.column = place.position.Line, place.position.Column
	}
	if sealed, _ := c.sealed["items"].([]any); i < len(sealed) {
		one.sealed, _ = sealed[i].(map[string]any)
	}
	return one, ok
}

// fieldPosition returns the place of a field's name, or of the object.
func (c parsedObject) fieldPosition(field string) schemas.Position {
	if at := c.tree().child(field); at != nil && at.key.Line > 0 {
		return at.key
	}
	return schemas.Position{Line: c.line, Column: c.column}
}

// lazyPositions parses a document again when a place is needed. Most documents have no findings,
// and places need more memory than the object.
func (l *loader) lazyPositions(name string, d document) func() *positionTree {
	file := l.relative(name)
	return sync.OnceValue(func() *positionTree {
		node, p := d.parse()
		if p != nil {
			return nil
		}
		return newPositionTree(file, node, 0)
	})
}

// serverMetadata are the fields of ObjectMeta that only API servers set. Output of kubectl get
// contains them. A uid would become part of names, and a deletionTimestamp would mark the object as
// deleted.
var serverMetadata = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"}

// declare makes a declaration of an object, or of each item of a List.
func (l *loader) declare(name string, c parsedObject) []Declaration {
	if c.object["kind"] == "List" && c.object["apiVersion"] == "v1" {
		items, ok := c.object["items"].([]any)
		for _, field := range sortedKeys(c.object) {
			if !slices.Contains([]string{"apiVersion", "kind", "metadata", "items"}, field) {
				at := c.fieldPosition(field)
				l.report(name, at.Line, at.Column, "landscape/file", schemas.TypeForbidden, "a List has no field %q; its objects are in items", field)
			}
		}
		if !ok && c.object["items"] != nil {
			at := c.fieldPosition("items")
			l.report(name, at.Line, at.Column, "landscape/file", schemas.TypeTypeInvalid, "items of a List must be a list of objects")
		} else if !ok {
			l.report(name, c.line, c.column, "landscape/file", schemas.TypeRequired, "a List must have items")
		}
		var found []Declaration
		for i := range items {
			one, ok := c.item(i)
			if !ok {
				l.report(name, one.line, one.column, "landscape/file", schemas.TypeInvalid, "must be an object with apiVersion, kind and metadata")
				continue
			}
			if _, has := one.object[sopsField]; has {
				at := one.fieldPosition(sopsField)
				l.report(name, at.Line, at.Column, "landscape/sops", schemas.TypeForbidden,
					"SOPS metadata (sops:) belong to the file, not to a List item, so it cannot be decrypted; put the object into its own file")
				continue
			}
			found = append(found, l.declare(name, one)...)
		}
		return found
	}
	if metadata, ok := c.object["metadata"].(map[string]any); ok && !l.keepsServerMetadata {
		for _, field := range serverMetadata {
			delete(metadata, field)
		}
	}
	d := Declaration{File: l.relative(name), Line: c.line, Column: c.column, Secret: c.secret}
	d.setContent(declaredContent{object: &unstructured.Unstructured{Object: c.object}, sealed: c.sealed, recipients: c.recipients, origins: []origin{{tree: c.tree}}})
	if !l.checkIdentity(&d) {
		return nil
	}
	l.checkSecret(&d)
	if c.secret != "" || len(c.document.data) == 0 || canHavePrivateKey(c.document.data) {
		l.checkPEMTexts(&d)
	}
	return []Declaration{d}
}

// nonObjectAdvice returns advice about a document that is not an object.
func nonObjectAdvice(file string) string {
	switch path.Base(file) {
	case "kustomization.yaml", "kustomization.yml", "Kustomization":
		return "an overlay belongs to the folder " + overlayFolder + "/OWNER/COMPONENT of the landscape itself, and not to a layer"
	}
	return "remove the document if it is not an object"
}

// checkIdentity checks that content is an object of a known kind, with valid metadata.
func (l *loader) checkIdentity(d *Declaration) bool {
	object := d.Object().Object
	var missing []string
	for _, field := range []string{"apiVersion", "kind"} {
		if text, ok := object[field].(string); !ok || text == "" {
			missing = append(missing, field)
		}
	}
	switch len(missing) {
	case 0:
	case 1:
		l.reportField(d, missing[0], schemas.TypeRequired, "landscape/kind", "must be set, as for every object of an API")
		return false
	default:
		l.reportField(d, "", schemas.TypeRequired, "landscape/kind", "apiVersion and kind must be set, as for every object of an API; "+nonObjectAdvice(d.File))
		return false
	}
	if _, err := schema.ParseGroupVersion(d.Object().GetAPIVersion()); err != nil {
		l.reportField(d, "apiVersion", schemas.TypeInvalid, "landscape/kind", fmt.Sprintf("%q must have the form GROUP/VERSION", d.Object().GetAPIVersion()))
		return false
	}
	if d.Object().GetAPIVersion() == "v1" && d.Object().GetKind() == "Config" {
		l.reportField(d, "kind", schemas.TypeForbidden, "landscape/kind", "this is a kubeconfig, whose credentials do not belong in Git; "+
			"remove the file, and renew the credentials: the history of the repository keeps them")
		return false
	}
	if field, typ, message := checkKind(d.kind); field != "" {
		l.reportField(d, field, typ, "landscape/kind", message)
		return false
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok && object["metadata"] != nil {
		l.reportField(d, "metadata", schemas.TypeTypeInvalid, "landscape/name", "must be an object")
		return false
	}
	for _, field := range []string{"name", "namespace"} {
		if _, isText := metadata[field].(string); !isText && metadata[field] != nil {
			l.reportField(d, "metadata."+field, schemas.TypeTypeInvalid, "landscape/name", "must be text; put the value in quotes")
			return false
		}
	}
	return true
}

func (l *loader) reportField(d *Declaration, field string, typ schemas.ViolationType, rule, message string) {
	place := d.Position(field)
	l.violations = append(l.violations, schemas.Violation{
		Severity: schemas.SeverityError, File: place.File, Line: place.Line, Column: place.Column,
		Kind: d.kind.Kind, Namespace: d.namespace, Name: d.name,
		Field: field, Type: typ, Rule: rule, Message: message,
	})
}
