// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// Limits of a render of a chart from a registry. Helm cannot be stopped: slow renders continue in
// the background. Large output is rejected before it is parsed, but is in memory by then.
const (
	chartTimeout    = 20 * time.Second
	maxChartOutput  = 16 << 20
	maxChartObjects = 2000
)

// ObjectsOf renders a chart of a registry for a release, like charts of Extensions. Errors may
// quote values.
func (c Chart) ObjectsOf(ref ChartReference, release, namespace, kubeVersion string, values map[string]any) ([]Object, error) {
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	return renderWithTimeout(c.Digest, chartTimeout, func() ([]Object, error) { return c.objects(ref, options, kubeVersion, values) })
}

// timedOutCharts are the digests of charts with a render that timed out: a second one would use
// more of the process.
var timedOutCharts sync.Map

// renderWithTimeout waits for the render of a chart, at most for limit.
func renderWithTimeout(digest string, limit time.Duration, render func() ([]Object, error)) ([]Object, error) {
	if _, is := timedOutCharts.Load(digest); is {
		return nil, fmt.Errorf("rendering takes longer than %s and still runs", limit)
	}
	type result struct {
		objects []Object
		err     error
	}
	done := make(chan result, 1)
	go func() {
		defer timedOutCharts.Delete(digest)
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: fmt.Errorf("the chart cannot be rendered: %v", p)}
			}
		}()
		objects, err := render()
		done <- result{objects, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case got := <-done:
		return got.objects, got.err
	case <-timer.C:
		timedOutCharts.Store(digest, true)
		select {
		case got := <-done:
			// it ended meanwhile, and its own Delete may have come before the Store
			timedOutCharts.Delete(digest)
			return got.objects, got.err
		default:
		}
		return nil, fmt.Errorf("rendering takes longer than %s", limit)
	}
}

// objects renders the chart as upstream does: missing values are empty.
func (c Chart) objects(ref ChartReference, release chartutil.ReleaseOptions, kubeVersion string, values map[string]any) ([]Object, error) {
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	if found := checkTemplates(loaded, ref.String()); len(found) > 0 {
		return nil, errors.New(strings.ReplaceAll(found.err().Error(), cataloguePath(""), ""))
	}
	values, err = helmValues(values)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return nil, err
	}
	given, err := chartutil.ToRenderValues(loaded, values, release, capabilitiesOf(kubeVersion))
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{}.Render(loaded, given)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, text := range rendered {
		size += len(text)
	}
	if size > maxChartOutput {
		return nil, fmt.Errorf("it renders to %d MiB: at most %d are allowed", size>>20, maxChartOutput>>20)
	}
	var out []Object
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		base := path.Base(name)
		if strings.HasPrefix(base, "_") || base == "NOTES.txt" || strings.TrimSpace(rendered[name]) == "" {
			continue
		}
		file := ref.String() + "/" + strings.TrimPrefix(name, loaded.Name()+"/")
		objects, err := DecodeYAML(file, []byte(rendered[name]))
		if err != nil {
			return nil, err
		}
		for i := range objects {
			objects[i].Origin.Line = 0 // it is a line of the output
			if namespaced, known := isNamespaced(objects[i].GroupVersionKind()); known && namespaced && objects[i].GetNamespace() == "" {
				objects[i].SetNamespace(release.Namespace)
			}
		}
		if out = append(out, objects...); len(out) > maxChartObjects {
			return nil, fmt.Errorf("it renders to more than %d objects", maxChartObjects)
		}
	}
	return out, nil
}
