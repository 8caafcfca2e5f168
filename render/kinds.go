// SPDX-License-Identifier: Apache-2.0

package render

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/render/strict"
)

// kindSchemas are the schemas of all kinds in a render: of Kubernetes, our API, the catalogue and
// overlays. A cluster may define others, so objects of other kinds are not checked.
type kindSchemas struct {
	catalogue fs.FS
	overlays  []Overlay

	mu sync.Mutex
	// ownGroups caches kinds of our API; charts and added are nil until first use.
	ownGroups                map[string]map[schema.GroupVersionKind]*strict.Kind
	fromCharts, fromOverlays map[schema.GroupVersionKind]*strict.Kind
	// resources caches the resources of groups, by the lower-case names of their kinds.
	resources map[string]map[string]string
}

func newKindSchemas(opts Options) *kindSchemas {
	return &kindSchemas{catalogue: opts.Catalogue, overlays: opts.Overlays, ownGroups: map[string]map[schema.GroupVersionKind]*strict.Kind{}, resources: map[string]map[string]string{}}
}

func (k *kindSchemas) schemaOf(gvk schema.GroupVersionKind) *strict.Kind {
	if kind := strict.Kubernetes(gvk); kind != nil {
		return kind
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	ours := k.ownGroups[gvk.Group]
	if ours == nil {
		ours = map[schema.GroupVersionKind]*strict.Kind{}
		for _, crd := range ownDefinitions(gvk.Group) {
			addKinds(ours, crd)
		}
		k.ownGroups[gvk.Group] = ours
	}
	if kind := ours[gvk]; kind != nil {
		return kind
	}
	if k.fromCharts == nil {
		k.fromCharts = kindsOfCharts(k.catalogue)
	}
	if kind := k.fromCharts[gvk]; kind != nil {
		return kind
	}
	if k.fromOverlays == nil {
		k.fromOverlays = kindsOfOverlays(k.overlays)
	}
	return k.fromOverlays[gvk]
}

// plurals returns the resources of a group, by the lower-case names of their kinds.
func (k *kindSchemas) plurals(group string) map[string]string {
	k.schemaOf(schema.GroupVersionKind{Group: group, Kind: "?"}) // reads all kinds
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.resources[group] == nil {
		k.resources[group] = strict.Plurals(group, func(yield func(*strict.Kind) bool) {
			for _, defined := range []map[schema.GroupVersionKind]*strict.Kind{k.ownGroups[group], k.fromCharts, k.fromOverlays} {
				for _, kind := range defined {
					if !yield(kind) {
						return
					}
				}
			}
		})
	}
	return k.resources[group]
}

// unknownKindMessage describes a kind that an API of Kubernetes or of the catalogue does not have;
// the result is "" for other APIs.
func (k *kindSchemas) unknownKindMessage(gvk schema.GroupVersionKind) string {
	k.schemaOf(gvk)
	known := strict.KubernetesKinds()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, defined := range []map[schema.GroupVersionKind]*strict.Kind{k.ownGroups[gvk.Group], k.fromCharts, k.fromOverlays} {
		known = slices.AppendSeq(known, maps.Keys(defined))
	}
	return strict.UnknownKind(gvk, known)
}

// similarAPI suggests the API that was probably meant by an undefined one. Its spelling is similar
// and it has the kind, or it differs by a letter.
func (k *kindSchemas) similarAPI(gvk schema.GroupVersionKind) string {
	k.schemaOf(gvk)
	known := strict.KubernetesKinds()
	k.mu.Lock()
	known = slices.Concat(known, slices.Collect(maps.Keys(k.fromCharts)), slices.Collect(maps.Keys(k.fromOverlays)))
	k.mu.Unlock()
	for _, crd := range crds.All() {
		known = append(known, schema.GroupVersionKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind})
	}
	return strict.SimilarAPI(gvk, known)
}

func addKinds(into map[schema.GroupVersionKind]*strict.Kind, crd *apiextensionsv1.CustomResourceDefinition) {
	for gvk, kind := range strict.DefinedKinds(crd) {
		into[gvk] = kind
	}
}

// addDefinedKinds adds the kinds that objects define.
func addDefinedKinds(into map[schema.GroupVersionKind]*strict.Kind, objects []Object) {
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		// checking the definition itself reports errors
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, crd) == nil {
			addKinds(into, crd)
		}
	}
}

// definitionChartPrefix is the name prefix, in the folder of charts, of charts that contain only
// definitions.
const (
	chartsFolder          = "charts"
	definitionChartPrefix = "crds-"
)

// kindsOfCharts returns the kinds that the catalogue's charts define. It renders a chart with a
// folder kinds once for each file there, as components do.
func kindsOfCharts(catalogue fs.FS) map[schema.GroupVersionKind]*strict.Kind {
	if embedded, ok := catalogue.(embed.FS); ok { // it never changes
		chartKinds.Lock()
		defer chartKinds.Unlock()
		if chartKinds.known == nil {
			chartKinds.known = map[embed.FS]map[schema.GroupVersionKind]*strict.Kind{}
		}
		if chartKinds.known[embedded] == nil {
			chartKinds.known[embedded] = readKindsOfCharts(catalogue)
		}
		return chartKinds.known[embedded]
	}
	return readKindsOfCharts(catalogue)
}

var chartKinds struct {
	sync.Mutex
	known map[embed.FS]map[schema.GroupVersionKind]*strict.Kind
}

func readKindsOfCharts(catalogue fs.FS) map[schema.GroupVersionKind]*strict.Kind {
	out := map[schema.GroupVersionKind]*strict.Kind{}
	entries, _ := fs.ReadDir(catalogue, chartsFolder) // a catalogue need not have charts
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), definitionChartPrefix) {
			continue
		}
		dir := path.Join(chartsFolder, entry.Name())
		values := []map[string]any{{}}
		if files, _ := fs.ReadDir(catalogue, path.Join(dir, "kinds")); len(files) > 0 {
			values = nil
			for _, file := range files {
				values = append(values, map[string]any{"kinds": strings.TrimSuffix(file.Name(), path.Ext(file.Name()))})
			}
		}
		for _, v := range values {
			// the component that renders the chart reports errors
			objects, _ := objectsOfChart(catalogue, dir, v)
			addDefinedKinds(out, objects)
		}
	}
	return out
}

// objectsOfChart renders a chart of the catalogue with minimal values.
func objectsOfChart(catalogue fs.FS, dir string, values map[string]any) ([]Object, error) {
	files, err := chartFiles(catalogue, dir)
	if err != nil {
		return nil, err
	}
	chart, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("load chart %s: %w", cataloguePath(dir), err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{}, nil)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return nil, err
	}
	return helmOutput(catalogue, dir, chart.Name(), rendered)
}

// kindsOfOverlays returns the kinds that files of overlays define.
func kindsOfOverlays(overlays []Overlay) map[schema.GroupVersionKind]*strict.Kind {
	out := map[schema.GroupVersionKind]*strict.Kind{}
	for _, overlay := range overlays {
		_ = fs.WalkDir(overlay.FS, overlay.Dir, func(p string, d fs.DirEntry, err error) error {
			if ext := path.Ext(p); err != nil || d.IsDir() || ext != ".yaml" && ext != ".yml" && ext != ".json" {
				return nil // building the overlay reports unreadable files
			}
			if data, err := fs.ReadFile(overlay.FS, p); err == nil {
				objects, _ := DecodeYAML(p, data) // patches and kustomizations are among the files
				addDefinedKinds(out, objects)
			}
			return nil
		})
	}
	return out
}
