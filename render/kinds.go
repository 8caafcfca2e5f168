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

// kinds are the schemas of what a render may have: Kubernetes' own, those of our API, of the
// catalogue, and of what overlays add.
type kinds struct {
	catalogue fs.FS
	overlays  []Overlay

	mu sync.Mutex
	// groups are the kinds of our API that were asked for; charts and added are nil until somebody
	// asks.
	groups        map[string]map[schema.GroupVersionKind]*strict.Kind
	charts, added map[schema.GroupVersionKind]*strict.Kind
	// resources are those of the groups that were asked for, by the names of their kinds in small
	// letters.
	resources map[string]map[string]string
}

func newKinds(opts Options) *kinds {
	return &kinds{catalogue: opts.Catalogue, overlays: opts.Overlays, groups: map[string]map[schema.GroupVersionKind]*strict.Kind{}, resources: map[string]map[string]string{}}
}

// of gives the schema of a kind, nil where nothing defines it: such an object is not checked, since
// the cluster may have a definition from elsewhere.
func (k *kinds) of(gvk schema.GroupVersionKind) *strict.Kind {
	if kind := strict.Kubernetes(gvk); kind != nil {
		return kind
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	ours := k.groups[gvk.Group]
	if ours == nil {
		ours = map[schema.GroupVersionKind]*strict.Kind{}
		for _, crd := range ownDefinitions(gvk.Group) {
			define(ours, crd)
		}
		k.groups[gvk.Group] = ours
	}
	if kind := ours[gvk]; kind != nil {
		return kind
	}
	if k.charts == nil {
		k.charts = kindsOfCharts(k.catalogue)
	}
	if kind := k.charts[gvk]; kind != nil {
		return kind
	}
	if k.added == nil {
		k.added = kindsOfOverlays(k.overlays)
	}
	return k.added[gvk]
}

// plurals gives the resources of a group, by the names of their kinds in small letters.
func (k *kinds) plurals(group string) map[string]string {
	k.of(schema.GroupVersionKind{Group: group, Kind: "?"}) // reads all there is
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.resources[group] == nil {
		k.resources[group] = strict.Plurals(group, func(yield func(*strict.Kind) bool) {
			for _, defined := range []map[schema.GroupVersionKind]*strict.Kind{k.groups[group], k.charts, k.added} {
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

// unknown says what is wrong with a kind that an API of Kubernetes, or one that the catalogue
// defines, does not have; "" where the API is neither.
func (k *kinds) unknown(gvk schema.GroupVersionKind) string {
	k.of(gvk)
	known := strict.KubernetesKinds()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, defined := range []map[schema.GroupVersionKind]*strict.Kind{k.groups[gvk.Group], k.charts, k.added} {
		known = slices.AppendSeq(known, maps.Keys(defined))
	}
	return strict.Unknown(gvk, known)
}

// near says which API was probably meant by one that nothing defines: one that is written nearly
// the same and has the kind, or differs by a letter.
func (k *kinds) near(gvk schema.GroupVersionKind) string {
	k.of(gvk)
	known := strict.KubernetesKinds()
	k.mu.Lock()
	known = slices.Concat(known, slices.Collect(maps.Keys(k.charts)), slices.Collect(maps.Keys(k.added)))
	k.mu.Unlock()
	for _, crd := range crds.All() {
		known = append(known, schema.GroupVersionKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind})
	}
	return strict.Near(gvk, known)
}

func define(into map[schema.GroupVersionKind]*strict.Kind, crd *apiextensionsv1.CustomResourceDefinition) {
	for gvk, kind := range strict.Defined(crd) {
		into[gvk] = kind
	}
}

// defineAll adds the kinds that objects define.
func defineAll(into map[schema.GroupVersionKind]*strict.Kind, objects []Object) {
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		// what is wrong with it is found when it is checked itself
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, crd) == nil {
			define(into, crd)
		}
	}
}

// definitionCharts is the folder of the charts of the catalogue; those whose names begin with this
// hold definitions and nothing else.
const (
	chartsFolder     = "charts"
	definitionCharts = "crds-"
)

// kindsOfCharts are the kinds that the catalogue's charts define. A chart with a folder kinds is
// rendered for each file in it, as components do.
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
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), definitionCharts) {
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
			// what is wrong with the chart is said by the component that renders it
			objects, _ := objectsOfChart(catalogue, dir, v)
			defineAll(out, objects)
		}
	}
	return out
}

// objectsOfChart renders a chart of the catalogue with few values.
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

// kindsOfOverlays are the kinds that files of overlays define.
func kindsOfOverlays(overlays []Overlay) map[schema.GroupVersionKind]*strict.Kind {
	out := map[schema.GroupVersionKind]*strict.Kind{}
	for _, overlay := range overlays {
		_ = fs.WalkDir(overlay.FS, overlay.Dir, func(p string, d fs.DirEntry, err error) error {
			if ext := path.Ext(p); err != nil || d.IsDir() || ext != ".yaml" && ext != ".yml" && ext != ".json" {
				return nil // what cannot be read is found when the overlay is built
			}
			if data, err := fs.ReadFile(overlay.FS, p); err == nil {
				objects, _ := DecodeYAML(p, data) // patches and kustomizations are among the files
				defineAll(out, objects)
			}
			return nil
		})
	}
	return out
}
