// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// applyOperations applies the operations of a JSON patch (RFC 6902) to each target in turn.
// Kustomize lets replace add missing fields, so a misspelt path would become a field.
func (c *overlayCheck) applyOperations(p *patch, targets []Object) {
	operations, err := jsonpatch.DecodePatch([]byte(p.Patch.Patch))
	if err != nil {
		return // krusty reports it
	}
	for _, o := range targets {
		text, err := json.Marshal(ensureAnnotations(o))
		if err != nil {
			continue
		}
		for i, operation := range operations {
			done, err := jsonpatch.Patch{operation}.Apply(text)
			if err != nil {
				c.reportFailedOperation(p, i, o, text, err)
				break
			}
			text = done
			c.checkOperationValue(p, i, operation, o)
		}
	}
}

// ensureAnnotations is the object as krusty sees it: the annotations for the build always exist, so
// an operation can add to them.
func ensureAnnotations(o Object) map[string]any {
	metadata, ok := o.Object["metadata"].(map[string]any)
	if !ok || metadata["annotations"] != nil {
		return o.Object
	}
	out, metadata := maps.Clone(o.Object), maps.Clone(metadata)
	metadata["annotations"] = map[string]any{}
	out["metadata"] = metadata
	return out
}

// reportFailedOperation reports an operation that cannot be applied.
func (c *overlayCheck) reportFailedOperation(p *patch, i int, o Object, text []byte, err error) {
	item := resolveAlias(p.node).Content[i]
	_, op := childNode(item, "op")
	field, at := "path", item
	if _, from := childNode(item, "from"); from != nil && !hasValueAtPointer(text, from.Value) {
		field = "from"
	}
	_, value := childNode(item, field)
	if value == nil {
		return
	}
	at = value
	message := ""
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed) && hasValueAtPointer(text, value.Value):
		message = fmt.Sprintf("the value at %s of %s differs", value.Value, nameOfObject(o))
	case errors.Is(err, jsonpatch.ErrMissing), errors.Is(err, jsonpatch.ErrInvalidIndex), errors.Is(err, jsonpatch.ErrTestFailed), errors.Is(err, jsonpatch.ErrInvalid):
		message = missingPathMessage(text, value.Value, op.Value, o)
	default:
		return
	}
	c.report(finding{Position: p.position(at), field: p.entry, kind: schemas.TypeInvalid, rule: ruleOverlayPath,
		message: fmt.Sprintf("operation %d (%s): %s", i, op.Value, message)})
}

// missingPathMessage names the part of a path that does not exist, and the likely intention.
func missingPathMessage(text []byte, pointer, op string, o Object) string {
	var value any
	if json.Unmarshal(text, &value) != nil {
		return pointer + " does not exist"
	}
	steps := pointerSteps(pointer)
	for i, step := range steps {
		parent := "/" + strings.Join(strings.Split(strings.TrimPrefix(pointer, "/"), "/")[:i], "/")
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[step]
			if ok {
				value = inner
				continue
			}
			hint := ""
			if guess := suggest.Closest(step, sortedKeys(v)); guess != "" {
				hint = fmt.Sprintf("; did you mean %q?", guess)
			} else if len(v) > 0 && len(v) <= 12 {
				hint = "; it has " + strings.Join(sortedKeys(v), ", ")
			}
			if op == "add" || op == "replace" && i == len(steps)-1 {
				if i > 0 && i < len(steps)-1 && (steps[i-1] == "labels" || steps[i-1] == "annotations" || steps[i-1] == "matchLabels" || steps[i-1] == "nodeSelector") {
					hint = fmt.Sprintf("; write / in a key as ~1: %s/%s", parent, strings.Join(steps[i:], "~1"))
				} else if i < len(steps)-1 {
					hint += "; add its parent first"
				} else {
					hint += "; use add for a field that is not set"
				}
			}
			return fmt.Sprintf("%s has no %q at %s%s", nameOfObject(o), step, parent, hint)
		case []any:
			n, err := strconv.Atoi(step)
			if err == nil && n >= 0 && n < len(v) {
				value = v[n]
				continue
			}
			return fmt.Sprintf("%s has %d items at %s, and no item %q", nameOfObject(o), len(v), parent, step)
		default:
			return fmt.Sprintf("%s has a single value at %s, and no %q in it", nameOfObject(o), parent, step)
		}
	}
	return fmt.Sprintf("%s cannot be done on %s", pointer, nameOfObject(o))
}

func nameOfObject(o Object) string { return o.GetKind() + " " + o.GetName() }

// hasValueAtPointer reports whether a value exists at a JSON pointer.
func hasValueAtPointer(text []byte, pointer string) bool {
	var value any
	if json.Unmarshal(text, &value) != nil {
		return false
	}
	for _, step := range pointerSteps(pointer) {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[step]
			if !ok {
				return false
			}
			value = inner
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(v) {
				return false
			}
			value = v[n]
		default:
			return false
		}
	}
	return true
}

// pointerSteps are the parts of a JSON pointer (RFC 6901).
func pointerSteps(pointer string) []string {
	if pointer == "" {
		return nil
	}
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[i])
	}
	return steps
}

// checkOperationValue checks the value and the path of an operation.
func (c *overlayCheck) checkOperationValue(p *patch, i int, operation jsonpatch.Operation, o Object) {
	kind := c.schemaOf(o.GroupVersionKind())
	item := resolveAlias(p.node).Content[i]
	_, op := childNode(item, "op")
	_, pointer := childNode(item, "path")
	_, written := childNode(item, "value")
	if kind == nil || op == nil || pointer == nil || written == nil || op.Value == "test" {
		return
	}
	var encoded any
	if raw := operation["value"]; raw == nil || utiljson.Unmarshal(*raw, &encoded) != nil {
		return
	}
	steps := pointerSteps(pointer.Value)
	content, path, ok := wrapValue(kind.Root, steps, encoded)
	if !ok {
		return
	}
	for _, found := range kind.CheckPart(content) {
		at := pointer
		if len(found.Path) >= len(path) {
			if at = nodeAt(written, found.Path[len(path):]); len(found.Path) == len(path) {
				at = written
				// the path names a field that does not exist
				if found.Type == string(schemas.TypeForbidden) {
					at = pointer
				}
			}
		}
		c.report(c.finding(p.entry, kind, p.position(at), withIndices(found, steps)))
	}
}

// wrapValue is an object with only a value at a path; its lists have one item. ok is false for a
// path into parts that the schema leaves open.
func wrapValue(n *structure.Node, steps []string, value any) (content map[string]any, path fieldpath.Path, ok bool) {
	for _, step := range steps {
		switch {
		case n == nil:
			return nil, nil, false
		case n.Items != nil || n.Type == "array":
			path, n = append(path, 0), n.Items
		case n.Properties[step] != nil:
			path, n = append(path, step), n.Properties[step]
		case n.Additional != nil:
			path, n = append(path, fieldpath.Key(step)), n.Additional
		default:
			path, n = append(path, step), nil
		}
	}
	for i := len(path) - 1; i >= 0; i-- {
		if _, isItem := path[i].(int); isItem {
			value = []any{value}
		} else {
			value = map[string]any{fieldpath.StepName(path[i]): value}
		}
	}
	content, ok = value.(map[string]any)
	return content, path, ok
}

// withIndices sets the indices of a JSON pointer in a path.
func withIndices(found structure.Finding, steps []string) structure.Finding {
	path := slices.Clone(found.Path)
	for i := range min(len(path), len(steps)) {
		if _, isItem := path[i].(int); isItem {
			if n, err := strconv.Atoi(steps[i]); err == nil {
				path[i] = n
			} else {
				path[i] = fieldpath.Key(steps[i])
			}
		}
	}
	found.Path = path
	return found
}
