// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// captureStandardError returns everything written to standard error during a function.
func captureStandardError(t *testing.T, do func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	before := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = before }()
	do()
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}

// TestDeprecatedFieldsOfKustomize: deprecated fields keep their meaning, and krusty does not warn
// about them on the terminal.
func TestDeprecatedFieldsOfKustomize(t *testing.T) {
	files := map[string]string{
		"kustomization.yaml": "commonLabels: {outer: x}\ncomponents: [more]\n",
		"more/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonLabels: {inner: x}\n" +
			"patchesStrategicMerge:\n- p.yaml\n- |\n  {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: garden}, data: {b: c}}\n" +
			"patchesJson6902:\n- target: {version: v1, kind: ConfigMap, name: a}\n  patch: '[{op: add, path: /data/d, value: e}]'\n",
		"more/p.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: garden}\ndata: {x: z}\n",
	}
	var res Result
	said := captureStandardError(t, func() {
		var err error
		res, err = renderOverlaid(t, files)
		require.NoError(t, err)
	})
	assert.Empty(t, said)
	o := objectOf(t, res.Bundles, "ConfigMap", "a")
	assert.Equal(t, map[string]any{"x": "z", "b": "c", "d": "e"}, o.Object["data"])
	assert.Subset(t, o.GetLabels(), map[string]string{"inner": "x", "outer": "x"})
}
