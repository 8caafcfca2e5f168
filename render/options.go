// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// Options are the parts of a landscape that shape every render.
type Options struct {
	// Catalogue holds the components; normally components.FS.
	Catalogue fs.FS
	// Overlays are the overlays of the landscape and its layers, in the order of their application.
	Overlays []Overlay
	// ImageOverrides replace entries of the catalogue's image vector; later ones win.
	ImageOverrides []Image
	// Enabled switches components ("garden/vpa") on or off against their own rule.
	Enabled map[string]bool
	// enabledPositions are the positions of Enabled.
	enabledPositions map[string]schemas.Position
	// probes record the effect of overlays, by name of the overlay.
	probes map[string]*overlayUsage
	// kindSchemas are the schemas that rendered objects are checked against.
	kinds *kindSchemas
	// skipChecks skips the check of rendered objects.
	skipChecks bool
	// evaluatorPool cache evaluated components between renders; nil disables the cache.
	evaluators *evaluatorPool
	// OnlyComponents selects components, sorted; empty means all.
	OnlyComponents []string
}

// WithCache returns options for repeated renders of the same components with small changes:
// constant parts are built once. The cache lives as long as the options, and takes a few hundred MB
// for all components of an owner.
func (o Options) WithCache() Options {
	o.kinds, o.evaluators = newKindSchemas(o), &evaluatorPool{}
	return o
}

// WithoutChecks returns options that do not check objects against schemas, for callers that only
// need values.
func (o Options) WithoutChecks() Options {
	o.skipChecks = true
	return o
}

// LandscapeOptions returns the options of a landscape. If CheckLandscape finds errors, it returns
// an *InvalidError.
func LandscapeOptions(catalogue fs.FS, l *landscapes.Landscape, settings ...Setting) (Options, error) {
	if !settingsOf(settings).checksPassed {
		if err := invalidError(CheckLandscape(catalogue, l, settings...)); err != nil {
			return Options{Catalogue: catalogue}, err
		}
	}
	return landscapeOptions(catalogue, l), nil
}

// landscapeOptions uses the settings that fit the catalogue.
func landscapeOptions(catalogue fs.FS, l *landscapes.Landscape) Options {
	o := Options{Catalogue: catalogue, Enabled: map[string]bool{}, enabledPositions: map[string]schemas.Position{}}
	for owner, settings := range l.Config.Spec.Components {
		for name, setting := range settings {
			component := path.Join(string(owner), name)
			if setting.Enabled != nil && isComponent(catalogue, component) {
				o.Enabled[component] = *setting.Enabled
				o.enabledPositions[component] = configPosition(l, fmt.Sprintf("spec.components.%s.%s.enabled", owner, name))
			}
		}
	}
	for _, overlay := range l.Overlays {
		component := path.Join(overlay.Owner, overlay.Component)
		if isComponent(catalogue, component) {
			o.Overlays = append(o.Overlays, Overlay{Component: component, FS: l.FS, Dir: overlay.Path, Name: path.Join(overlay.Layer, "components", component)})
		}
	}
	vector, _ := ReadImageVector(catalogue)
	known := imageNames(vector)
	for _, image := range l.Config.Spec.Images {
		if !slices.Contains(known, image.Name) {
			continue
		}
		if _, err := semver.NewConstraint(image.Version); image.Version != "" && err != nil {
			continue
		}
		o.ImageOverrides = append(o.ImageOverrides, Image{
			Name: image.Name, Repository: image.Repository, Tag: image.Tag, TargetVersion: image.Version,
		})
	}
	return o
}

func isComponent(catalogue fs.FS, component string) bool {
	_, err := fs.Stat(catalogue, path.Join(component, "component.cue"))
	return err == nil
}

// configPosition is the position of a field of landscape.yaml.
func configPosition(l *landscapes.Landscape, field string) schemas.Position {
	if l.ConfigDeclaration == nil {
		return schemas.Position{File: "landscape.yaml", Line: 1, Column: 1}
	}
	return l.ConfigDeclaration.Position(field)
}
