// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelabs.dev/go/oci/ociregistry/ociref"
	"cuelang.org/go/cue"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
)

// ChartReference names a chart in a registry by tag, digest, or both; the digest takes precedence.
type ChartReference struct{ Repository, Tag, Digest string }

// String returns REPOSITORY:TAG@DIGEST.
func (r ChartReference) String() string {
	out := r.Repository
	if r.Tag != "" {
		out += ":" + r.Tag
	}
	if r.Digest != "" {
		out += "@" + r.Digest
	}
	return out
}

// ParseChartReference reads a reference in any of its notations.
func ParseChartReference(named gardencorev1.OCIRepository) (ChartReference, error) {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	out := ChartReference{Repository: strings.TrimPrefix(text(named.Repository), "oci://"), Tag: text(named.Tag), Digest: text(named.Digest)}
	if ref := strings.TrimPrefix(text(named.Ref), "oci://"); ref != "" {
		parsed, err := ociref.Parse(ref)
		if err != nil {
			return out, fmt.Errorf("chart %q is not a registry reference with a repository and a tag or digest", ref)
		}
		out = ChartReference{Repository: parsed.Host + "/" + parsed.Repository, Tag: parsed.Tag, Digest: string(parsed.Digest)}
	}
	if out.Repository == "" || out.Tag == "" && out.Digest == "" {
		return out, fmt.Errorf("chart %q needs a registry, a repository, and a tag or digest", out)
	}
	if out.Digest != "" {
		out.Tag = "" // the digest takes precedence, and the tag may have moved
	}
	return out, nil
}

// Chart is a chart that was pulled.
type Chart struct {
	// Digest is that of the manifest.
	Digest string
	// Problem is the reason why the chart is missing.
	Problem string
	files   registryChartFiles
}

// registryChartFiles are by their names in the chart. Their digest is the digest of the chart.
type registryChartFiles map[string][]byte

// NewChart makes a chart from its files.
func NewChart(digest string, files map[string][]byte) (Chart, error) {
	c := Chart{Digest: digest, files: files}
	if _, err := c.load(); err != nil {
		return Chart{}, fmt.Errorf("the pulled files are not a Helm chart: %w", err)
	}
	return c, nil
}

func (c Chart) load() (*chart.Chart, error) {
	files := make([]*loader.BufferedFile, 0, len(c.files))
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		files = append(files, &loader.BufferedFile{Name: name, Data: c.files[name]})
	}
	return loader.LoadFiles(files)
}

// chartError concerns one bundle of a chart from a registry; other bundles are still rendered.
type chartError struct {
	text string
	// notRequested means that the chart was not requested: it is unknown, not faulty.
	notRequested bool
}

func (e *chartError) Error() string { return e.text }

// registryChartObjects renders a chart from a registry. Like upstream, it treats missing values as
// empty.
func registryChartObjects(in Input, spec bundleSpec, src helmSource, with cue.Value) ([]Object, error) {
	ref, err := ParseChartReference(*src.OCI)
	if err != nil {
		return nil, &chartError{text: err.Error()}
	}
	pulled, asked := in.Charts[ref.String()]
	switch {
	case !asked:
		return nil, &chartError{text: "chart " + ref.String(), notRequested: true}
	case pulled.Problem != "":
		return nil, &chartError{text: pulled.Problem}
	}
	objects, err := renderWithTimeout(pulled.Digest, chartTimeout, func() ([]Object, error) { return renderRegistryChart(in, spec, src, ref, pulled) })
	if err != nil {
		return nil, &chartError{text: fmt.Sprintf("chart %s: %s", ref, err)}
	}
	if src.GardenKubeconfig != nil {
		src.GardenKubeconfig.inject(objects)
	}
	if !with.Exists() {
		return objects, nil
	}
	more, err := cueObjects(with)
	return append(more, objects...), err
}

func renderRegistryChart(in Input, spec bundleSpec, src helmSource, ref ChartReference, pulled Chart) ([]Object, error) {
	release := chartutil.ReleaseOptions{Name: src.Release, Namespace: src.Namespace, Revision: 1, IsInstall: true}
	resources := resourceValues{resources: src.Resources, checksums: in.ResourceChecksums}
	return resources.objects(src.Values, func(values map[string]any) ([]Object, error) {
		objects, err := pulled.objects(ref, release, helmKubeVersion(in, spec.Cluster), mergeValues(values, src.Overrides))
		if err != nil {
			return nil, err
		}
		return objects, rejectMarks(objects)
	})
}

// rejectMarks rejects a chart that requests values of Secrets: reviewers of the Extension have not
// seen the request.
func rejectMarks(objects []Object) error {
	for _, o := range objects {
		for _, mark := range []string{MarkCopiedValues, MarkFilledValues} {
			if _, has := o.GetAnnotations()[mark]; has {
				return fmt.Errorf("%s %s has the annotation %s, which is not allowed in a chart", o.GetKind(), o.GetName(), mark)
			}
		}
	}
	return nil
}

// mergeValues merges over into under; over takes precedence.
func mergeValues(under, over map[string]any) map[string]any {
	out := map[string]any{}
	if under != nil {
		out = runtime.DeepCopyJSON(under)
	}
	for name, value := range over {
		a, isMap := out[name].(map[string]any)
		b, areMaps := value.(map[string]any)
		if isMap && areMaps {
			out[name] = mergeValues(a, b)
		} else {
			out[name] = value
		}
	}
	return out
}
