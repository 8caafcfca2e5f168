// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"

	"cuelang.org/go/cue"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
)

// helmSource is the evaluated source.helm of a bundle.
type helmSource struct {
	Chart   string         `json:"chart"`
	Release string         `json:"release"`
	Values  map[string]any `json:"values"`
	// OCI names a chart in a registry instead of Chart; it enables the next fields.
	OCI       *gardencorev1.OCIRepository `json:"oci"`
	Namespace string                      `json:"namespace"`
	// Overrides take precedence over Values, which the user sets.
	Overrides        map[string]any    `json:"overrides"`
	GardenKubeconfig *gardenKubeconfig `json:"gardenKubeconfig"`
	// Resources are the objects that Values may use.
	Resources []gardencorev1.NamedResourceReference `json:"resources"`
}

// helmObjects renders a chart without a cluster: lookup returns nothing, and the chart sees the
// capabilities of the bundle's Kubernetes version.
func helmObjects(catalogue fs.FS, dir string, in Input, spec bundleSpec, v cue.Value) ([]Object, error) {
	var src helmSource
	if err := v.Decode(&src); err != nil {
		return nil, cueError("helm", err)
	}
	if src.OCI != nil {
		return registryChartObjects(in, spec, src, v.LookupPath(cue.ParsePath("with")))
	}
	named := v.LookupPath(cue.ParsePath("chart"))
	chartDir, err := resolveFolder(dir, src.Chart)
	if err != nil {
		return nil, findingAt(named, "helm: %s", err)
	}
	files, err := chartFiles(catalogue, chartDir)
	if err != nil {
		return nil, findingAt(named, "helm: the chart %s cannot be read: %s", cataloguePath(chartDir), err)
	}
	chart, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("helm: load chart %s: %w", cataloguePath(chartDir), err)
	}
	if found := checkTemplates(chart, chartDir); len(found) > 0 {
		return nil, found.err()
	}
	if found := checkValues(src.Values, v.LookupPath(cue.ParsePath("values"))); len(found) > 0 {
		return nil, found.err()
	}
	given, err := helmValues(src.Values)
	if err != nil {
		return nil, findingAt(named, "helm: %s", err)
	}
	options := chartutil.ReleaseOptions{Name: src.Release, Namespace: spec.Namespace, Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, given, options, capabilitiesOf(helmKubeVersion(in, spec.Cluster)))
	if err != nil {
		return nil, fmt.Errorf("helm: values of chart %s: %w", cataloguePath(chartDir), err)
	}
	rendered, err := engine.Engine{Strict: true}.Render(chart, values)
	if err != nil {
		return nil, templateError(chartDir, chart.Name(), err)
	}
	return helmOutput(catalogue, chartDir, chart.Name(), rendered)
}

// helmValues converts values as if Helm read them from a file: every number is a float64.
func helmValues(values map[string]any) (map[string]any, error) {
	raw, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("values cannot be written as JSON: %w", err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("values cannot be read as JSON: %w", err)
	}
	return out, nil
}

// helmOutput decodes the rendered templates in a stable order. It skips notes and partials. Helm
// does not render files under crds/, so charts of the catalogue have none.
func helmOutput(catalogue fs.FS, chartDir, chartName string, rendered map[string]string) ([]Object, error) {
	names := make([]string, 0, len(rendered))
	for name := range rendered {
		names = append(names, name)
	}
	sort.Strings(names)
	var out []Object
	for _, name := range names {
		base := path.Base(name)
		if strings.HasPrefix(base, "_") || base == "NOTES.txt" || strings.TrimSpace(rendered[name]) == "" {
			continue
		}
		template := path.Join(chartDir, strings.TrimPrefix(name, chartName+"/"))
		objects, err := DecodeYAML(cataloguePath(template), []byte(rendered[name]))
		if err != nil {
			return nil, outputError(catalogue, template, rendered[name], err)
		}
		for i := range objects {
			// The line is in the output, not in the template: it would mislead.
			objects[i].Origin.Line = 0
		}
		out = append(out, objects...)
	}
	return out, nil
}

// helmKubeVersion is the Kubernetes version of a cluster.
func helmKubeVersion(in Input, cluster string) string {
	if cluster == ClusterVirtual || cluster == ClusterShoot {
		if in.TargetVersion != "" {
			return in.TargetVersion
		}
	}
	role := ClusterSeed
	if in.Owner.Kind == "garden" {
		role = ClusterRuntime
	}
	if f, ok := in.Facts.Clusters[role]; ok && f.KubernetesVersion != "" {
		return f.KubernetesVersion
	}
	return DefaultKubernetesVersion
}

func chartFiles(catalogue fs.FS, dir string) ([]*loader.BufferedFile, error) {
	var files []*loader.BufferedFile
	err := fs.WalkDir(catalogue, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(catalogue, p)
		if err != nil {
			return err
		}
		files = append(files, &loader.BufferedFile{Name: strings.TrimPrefix(p, dir+"/"), Data: data})
		return nil
	})
	return files, err
}
