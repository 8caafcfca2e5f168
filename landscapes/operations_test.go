// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

const goodOperation = `apiVersion: landscape.pergola.dev/v1alpha1
kind: Operation
metadata: {name: rotate-1}
spec:
  object: Shoot garden-local/local
  operation: rotate-ssh-keypair
  notAfter: "2026-12-31T18:00:00Z"
`

func TestOperations(t *testing.T) {
	l, lines := load(t, tree(map[string]string{"landscape.yaml": bareConfig, "operations/rotate-1.yaml": goodOperation, "operations/.keep": "", "operations/README.md": "x"}), ".", Options{})
	require.Empty(t, lines)
	require.Len(t, l.Operations, 1)
	o := l.Operations[0]
	assert.Equal(t, "rotate-1", o.ID)
	assert.Equal(t, "Shoot garden-local/local", o.Object())
	assert.Equal(t, "rotate-ssh-keypair", o.Operation)
	assert.Equal(t, "operations/rotate-1.yaml", o.File)
	assert.Equal(t, 6, o.Line)
	assert.Equal(t, time.Date(2026, 12, 31, 18, 0, 0, 0, time.UTC), o.NotAfter)
	assert.Equal(t, schemas.Position{File: "operations/rotate-1.yaml", Line: 7, Column: 13}, o.NotAfterPosition)
	assert.NotEmpty(t, o.Digest)
	assert.Empty(t, l.Declarations)
}

// TestExpiredOperations: new or changed operations that have expired; at NotAfter itself they are
// still valid.
func TestExpiredOperations(t *testing.T) {
	over := time.Date(2026, 12, 31, 18, 0, 0, 0, time.UTC)
	now := over.Add(time.Second)
	of := func(operations ...Operation) *Landscape { return &Landscape{Operations: operations} }
	since := of(Operation{ID: "same", Digest: "a", NotAfter: over}, Operation{ID: "changed", Digest: "a", NotAfter: over}, Operation{ID: "gone", Digest: "a", NotAfter: over})
	l := of(Operation{ID: "same", Digest: "a", NotAfter: over}, Operation{ID: "changed", Digest: "b", NotAfter: over}, Operation{ID: "new", Digest: "a", NotAfter: over},
		Operation{ID: "any time", Digest: "a"}, Operation{ID: "early", Digest: "a", NotAfter: now})
	ids := func(all []Operation) []string {
		var out []string
		for _, o := range all {
			out = append(out, o.ID)
		}
		return out
	}
	assert.Equal(t, []string{"changed", "new"}, ids(l.ExpiredOperations(since, now)))
	assert.Equal(t, []string{"same", "changed", "new"}, ids(l.ExpiredOperations(nil, now)))
	assert.Empty(t, l.ExpiredOperations(since, over))
}

func TestWrongOperations(t *testing.T) {
	for name, test := range map[string]struct{ file, old, new, want string }{
		"kind":           {"rotate-1.yaml", "kind: Operation", "kind: Shoot", "operations/rotate-1.yaml:2:7 NotSupported must be Operation"},
		"field":          {"rotate-1.yaml", "  operation:", "  opration: x\n  operation:", `operations/rotate-1.yaml:6:13 Forbidden there is no field "opration"`},
		"operation":      {"rotate-1.yaml", "rotate-ssh-keypair", "rotate-ssh-keypar", `operations/rotate-1.yaml:6:14 NotSupported there is no operation "rotate-ssh-keypar" on a Shoot; did you mean "rotate-ssh-keypair"?`},
		"object":         {"rotate-1.yaml", "Shoot garden-local/local", "Shoot local", "operations/rotate-1.yaml:5:11 Invalid \"Shoot local\" lacks the namespace: write Shoot NAMESPACE/local"},
		"kind of object": {"rotate-1.yaml", "Shoot garden-local/local", "Secret garden/x", "names no object that has operations"},
		"time":           {"rotate-1.yaml", `"2026-12-31T18:00:00Z"`, "tomorrow", "operations/rotate-1.yaml:7:13 Invalid must be a time"},
		"name":           {"rotate-1.yaml", "name: rotate-1", "name: other", "operations/rotate-1.yaml:3:18 Invalid must be the name of the file, rotate-1"},
		"id":             {"Rotate.yaml", "metadata: {name: rotate-1}\n", "", "Invalid the name of the file is the id"},
		"ending":         {"rotate.yml", "", "", "operations/rotate.yml:0:0 NotSupported an operation is a file operations/ID.yaml"},
		"two":            {"rotate-1.yaml", "apiVersion", "a: b\n---\napiVersion", "Invalid the file must hold one object of kind Operation"},
		"no YAML":        {"rotate-1.yaml", "spec:", "spec: [", "this is not YAML"},
		"a list":         {"rotate-1.yaml", goodOperation, "[]\n", "NotSupported must be landscape.pergola.dev/v1alpha1"},
	} {
		t.Run(name, func(t *testing.T) {
			l, lines := load(t, tree(map[string]string{"landscape.yaml": bareConfig, "operations/" + test.file: strings.Replace(goodOperation, test.old, test.new, 1)}), ".", Options{})
			assert.Contains(t, strings.Join(lines, "\n"), test.want)
			assert.Empty(t, l.Operations)
		})
	}
	t.Run("in a layer", func(t *testing.T) {
		_, lines := load(t, tree(map[string]string{"base/landscape.yaml": bareConfig, "base/operations/rotate-1.yaml": goodOperation, "live/landscape.yaml": withLayers("[../base]")}), "live", Options{})
		assert.Contains(t, strings.Join(lines, "\n"), "operations belong to a landscape, not to a layer")
	})
}
