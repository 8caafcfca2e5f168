// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/landscapes"
)

// WithSampling is for a process with other duties that needs the effect of a change rather than its
// correctness:
//
//   - It limits how many Shoots are compared if only settings of the landscape or their references
//     change. The effect depends almost only on the form of a Shoot, so the sample prefers
//     different forms. Shoots with changed declarations are always compared.
//   - For owners that only settings change, it renders only the components of these settings.
//     Conflicts between two components are not found.
//   - It renders on one core, which uses half the memory of two.
func WithSampling(most int) Setting {
	return func(s *settings) { s.sampling, s.maxSampledShoots = true, most }
}

// shootSample selects Shoots.
type shootSample struct {
	limit, count int
	forms        map[string]bool
}

// include reports whether to compare a Shoot.
func (s *shootSample) include(d *landscapes.Declaration) bool {
	if s.limit == 0 { // no sample
		return true
	}
	form := shootShape(d)
	if s.count >= s.limit || s.count >= s.limit/2 && s.forms[form] {
		return false
	}
	if s.forms == nil {
		s.forms = map[string]bool{}
	}
	s.forms[form] = true
	s.count++
	return true
}

// shootShape describes the form of a Shoot: its fields, switches, types, purpose and minor
// versions.
func shootShape(d *landscapes.Declaration) string {
	var lines []string
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, field := range v {
				walk(path+"."+key, field)
			}
		case []any:
			for _, item := range v {
				walk(path+"[]", item)
			}
		case bool:
			lines = append(lines, fmt.Sprint(path, "=", v))
		case string:
			switch path[strings.LastIndexByte(path, '.')+1:] {
			case "type", "purpose", "mode", "name":
				lines = append(lines, path+"="+v)
			case "version":
				lines = append(lines, path+"="+minorVersion(v))
			default:
				lines = append(lines, path)
			}
		default:
			lines = append(lines, path)
		}
	}
	walk("", d.Object().Object["spec"])
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// hasSeed reports whether a Shoot names its Seed: other Shoots are not rendered.
func hasSeed(d *landscapes.Declaration) bool {
	// any other type means unbound
	seed, _, _ := unstructured.NestedString(d.Object().Object, "spec", "seedName")
	return seed != ""
}

func minorVersion(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// limitComponents restricts owners that only settings change to the components of these settings.
func (c *ownerComparison) limitComponents(catalogue fs.FS) error {
	between := map[string][]string{}
	for kind := range c.options {
		var err error
		if between[kind], err = changedComponents(catalogue, kind, c.old.Options, c.new.Options); err != nil {
			return err
		}
	}
	old := map[string]*Input{}
	for i := range c.old.Inputs {
		old[c.old.Inputs[i].Owner.String()] = &c.old.Inputs[i]
	}
	for i := range c.new.Inputs {
		after := &c.new.Inputs[i]
		before := old[after.Owner.String()]
		if before != nil && digestInput(*before, InputDigest{}) == digestInput(*after, InputDigest{}) {
			before.OnlyComponents, after.OnlyComponents = between[after.Owner.Kind], between[after.Owner.Kind]
		}
	}
	return nil
}

// changedComponents are the components of a kind that settings change; they are nil for all. Which
// components use an image is unknown before rendering.
func changedComponents(catalogue fs.FS, kind string, old, new Options) ([]string, error) {
	if !reflect.DeepEqual(old.ImageOverrides, new.ImageOverrides) || !slices.Equal(old.OnlyComponents, new.OnlyComponents) {
		return nil, nil
	}
	dirs, err := componentDirs(catalogue, kind)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, dir := range dirs {
		before, err := old.forComponent(dir).digest(kind)
		if err != nil {
			return nil, err
		}
		after, err := new.forComponent(dir).digest(kind)
		if err != nil {
			return nil, err
		}
		if before != after {
			out = append(out, dir)
		}
	}
	return out, nil
}

func (o Options) forComponent(component string) Options {
	o.Overlays = slices.DeleteFunc(slices.Clone(o.Overlays), func(overlay Overlay) bool { return overlay.Component != component })
	enabled := map[string]bool{}
	if on, ok := o.Enabled[component]; ok {
		enabled[component] = on
	}
	o.Enabled = enabled
	return o
}
