// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed all:charts
var charts embed.FS

const (
	chartDir = "charts/pergola"
	// Namespace is the default namespace of Pergola; upstream's operator and gardenlet use it, too.
	Namespace = "garden"
	// resourcePolicyAnnotation is Helm's annotation of objects that survive an uninstallation.
	resourcePolicyAnnotation = "helm.sh/resource-policy"
)

// Options are the options of a rendering.
type Options struct {
	Role      Role
	Namespace string
	// Values override those of the chart, as with Helm.
	Values map[string]any
}

// Installation is a rendered chart.
type Installation struct {
	Role      Role
	Namespace string
	// Definitions are CustomResourceDefinitions, which are applied before everything else.
	Definitions []*unstructured.Unstructured
	// Objects are the objects in rendering order.
	Objects []*unstructured.Unstructured
}

// IsRetained reports whether an object outlives the installation.
func IsRetained(o *unstructured.Unstructured) bool {
	return o.GetKind() == "CustomResourceDefinition" || o.GetAnnotations()[resourcePolicyAnnotation] == "keep"
}

// Render renders the chart without a cluster. Values that its schema rejects are a *ValuesError.
func Render(o Options) (*Installation, error) {
	c, err := loadChart()
	if err != nil {
		return nil, err
	}
	if o.Namespace == "" {
		o.Namespace = Namespace
	}
	values := chartutil.CoalesceTables(map[string]any{"role": string(o.Role)}, o.Values)
	release := chartutil.ReleaseOptions{Name: c.Name(), Namespace: o.Namespace, Revision: 1, IsInstall: true}
	input, err := chartutil.ToRenderValues(c, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, valuesError(err, c.Values)
	}
	rendered, err := engine.Engine{Strict: true}.Render(c, input)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", err)
	}
	out := &Installation{Role: o.Role, Namespace: o.Namespace}
	if o.Role == Operator {
		for _, crd := range c.CRDObjects() {
			objects, err := decode(crd.File.Name, crd.File.Data)
			if err != nil {
				return nil, err
			}
			out.Definitions = append(out.Definitions, objects...)
		}
	}
	names := make([]string, 0, len(rendered))
	for name := range rendered {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "_") || path.Base(name) == "NOTES.txt" {
			continue
		}
		objects, err := decode(name, []byte(rendered[name]))
		if err != nil {
			return nil, err
		}
		out.Objects = append(out.Objects, objects...)
	}
	return out, nil
}

// loadChart reads the embedded chart.
func loadChart() (*chart.Chart, error) {
	var files []*loader.BufferedFile
	err := fs.WalkDir(charts, chartDir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(charts, p)
		files = append(files, &loader.BufferedFile{Name: strings.TrimPrefix(p, chartDir+"/"), Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	return c, nil
}

func decode(file string, data []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var out []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("rendering the chart: %s: %w", file, err)
		case len(o.Object) > 0:
			out = append(out, o)
		}
	}
}
