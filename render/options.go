package render

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/landscapes"
)

// Options are the parts of a landscape that shape every rendering.
type Options struct {
	// Catalogue holds the components; normally components.FS.
	Catalogue fs.FS
	// Overlays of the landscape and its layers, in the order they are applied.
	Overlays []Overlay
	// ImageOverrides replace entries of the catalogue's image vector; later ones win.
	ImageOverrides []Image
	// Enabled switches components ("garden/vpa") on or off against their own rule.
	Enabled map[string]bool
	// Only renders the named components, which are sorted; empty means all.
	Only []string
}

// LandscapeOptions takes from a landscape what shapes every rendering. A landscape that is written for another
// version of the catalogue is refused with a *VersionError; settings and overlays of components that
// do not exist are reported with their place.
func LandscapeOptions(catalogue fs.FS, l *landscapes.Landscape) (Options, error) {
	o := Options{Catalogue: catalogue, Enabled: map[string]bool{}}
	if err := CheckCatalogue(l); err != nil {
		return o, err
	}
	var problems []error
	for _, owner := range slices.Sorted(maps.Keys(l.Config.Spec.Components)) {
		settings := l.Config.Spec.Components[owner]
		for _, name := range sortedKeys(settings) {
			field := fmt.Sprintf("spec.components.%s.%s", owner, name)
			component := path.Join(string(owner), name)
			if err := isComponent(catalogue, component); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", configPlace(l, field), field, err))
			} else if enabled := settings[name].Enabled; enabled != nil {
				o.Enabled[component] = *enabled
			}
		}
	}
	for _, overlay := range l.Overlays {
		component := path.Join(overlay.Owner, overlay.Component)
		name := path.Join(overlay.Layer, "components", component)
		if err := isComponent(catalogue, component); err != nil {
			problems = append(problems, fmt.Errorf("overlay %s: %w", name, err))
			continue
		}
		o.Overlays = append(o.Overlays, Overlay{Component: component, FS: l.FS, Dir: overlay.Path, Name: name})
	}
	for _, image := range l.Config.Spec.Images {
		o.ImageOverrides = append(o.ImageOverrides, Image{
			Name: image.Name, Repository: image.Repository, Tag: image.Tag, TargetVersion: image.Version,
		})
	}
	return o, errors.Join(problems...)
}

// isComponent is an error that lists what there is when the catalogue has no such component.
func isComponent(catalogue fs.FS, component string) error {
	if _, err := fs.Stat(catalogue, path.Join(component, "component.cue")); err == nil {
		return nil
	}
	dirs, err := componentDirs(catalogue, path.Dir(component))
	if err != nil {
		return err
	}
	return fmt.Errorf("no component %s in the catalogue, which has %s", component, strings.Join(dirs, ", "))
}

// configPlace is file:line:column of a field of landscape.yaml.
func configPlace(l *landscapes.Landscape, field string) string {
	if l.ConfigDeclaration == nil {
		return "landscape.yaml"
	}
	p := l.ConfigDeclaration.Position(field)
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}
