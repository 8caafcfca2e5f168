// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChartLimits(t *testing.T) {
	ref := ChartReference{Repository: "registry.example.org/charts/watcher", Tag: "v1"}
	for name, test := range map[string]struct{ template, want string }{
		"a large text":      {`{{ repeat 17 (repeat 1048576 "#") }}`, "it renders to 17 MiB: at most 16 are allowed"},
		"many objects":      {"{{ range until 2001 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c{{ . }}}\n{{ end }}", "it renders to more than 2000 objects"},
		"endless recursion": {`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, "nested"},
		"what fails":        {`{{ fail "no" }}`, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testChart(t, test.template).ObjectsOf(ref, "watcher", "garden", "v1.34.0", map[string]any{})
			assert.ErrorContains(t, err, test.want)
		})
	}
	objects, err := testChart(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-{{ .Values.a }}-{{ .Values.c }}}\n").ObjectsOf(ref, "watcher", "garden", "v1.34.0", map[string]any{"c": "d"})
	require.NoError(t, err)
	require.Len(t, objects, 1)
	assert.Equal(t, "garden/watcher-b-d", objects[0].GetNamespace()+"/"+objects[0].GetName())
}

// TestChartTimeout: a render that times out is not started again before it ends.
func TestChartTimeout(t *testing.T) {
	end := make(chan struct{})
	begun := make(chan struct{}, 2)
	slow := func() ([]Object, error) { begun <- struct{}{}; <-end; return nil, nil }
	_, err := renderWithTimeout("endless", time.Millisecond, slow)
	assert.ErrorContains(t, err, "rendering takes longer than 1ms")
	_, err = renderWithTimeout("endless", time.Millisecond, slow)
	assert.ErrorContains(t, err, "still runs")
	_, err = renderWithTimeout("another", time.Minute, func() ([]Object, error) { return nil, nil })
	assert.NoError(t, err)
	<-begun
	assert.Empty(t, begun)
	close(end)
	assert.Eventually(t, func() bool {
		_, err := renderWithTimeout("endless", time.Minute, func() ([]Object, error) { return nil, nil })
		return err == nil
	}, time.Minute, time.Millisecond)
}
