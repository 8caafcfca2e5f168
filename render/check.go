package render

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// CheckLandscape finds mistakes in a landscape's use of the catalogue. Examples are another version
// of the catalogue, unknown components and images, overlays that match nothing, and recorded facts
// without an owner. Others are Shoots without their Seed, Project or CloudProfile, invalid versions
// of Kubernetes, and Seeds with the name of another cluster. It also finds disabled components that
// others need. It renders only components with overlays, unless some are disabled. Files are
// relative to the landscape.
func CheckLandscape(catalogue fs.FS, l *landscapes.Landscape, settings ...Setting) []schemas.Violation {
	if l.LacksLayer {
		return nil
	}
	c := landscapeCheck{catalogue: catalogue, landscape: l, owned: map[string]bool{}}
	c.seeds()
	if c.version() {
		c.components()
		c.images()
		c.readOverlays()
		c.healthFields()
	}
	c.owners(settingsOf(settings))
	c.unmatched()
	return sortedViolations(c.out)
}

type landscapeCheck struct {
	catalogue fs.FS
	landscape *landscapes.Landscape
	out       []schemas.Violation

	// rendering are the options to render with, nil if the landscape is for another catalogue;
	// sound are the valid overlays to test.
	rendering *Options
	sound     []Overlay
	// owned are the kinds of owners that exist.
	owned map[string]bool
}

func (c *landscapeCheck) add(list ...finding) {
	for _, f := range list {
		if f.rule != "" {
			c.out = append(c.out, f.violation())
		}
	}
}

// config reports a field of landscape.yaml.
func (c *landscapeCheck) config(field, rule string, kind schemas.Type, format string, args ...any) {
	c.add(c.ofConfig(field, rule, kind, format, args...))
}

// configWarning reports a field of landscape.yaml that may be intended.
func (c *landscapeCheck) configWarning(field, rule string, kind schemas.Type, format string, args ...any) {
	f := c.ofConfig(field, rule, kind, format, args...)
	f.warning = true
	c.add(f)
}

func (c *landscapeCheck) ofConfig(field, rule string, kind schemas.Type, format string, args ...any) finding {
	return finding{
		Position: configPosition(c.landscape, field), field: field, kind: kind, rule: rule, message: fmt.Sprintf(format, args...),
		object: identity{kind: "Landscape", name: c.landscape.Config.Name},
	}
}

// version rejects a landscape for another catalogue than the built-in one: nobody has reviewed its
// render. A landscape without a version uses the built-in catalogue.
func (c *landscapeCheck) version() bool {
	pinned := c.landscape.Config.Spec.Catalogue
	if pinned == nil || strings.TrimPrefix(pinned.Version, "v") == components.Version {
		return true
	}
	c.config("spec.catalogue.version", ruleCatalogue, schemas.TypeNotSupported,
		"the landscape is written for catalogue %s, and this program has %s: use the program of that version, or set %s and review what it changes (golden --update, then git diff)",
		strings.TrimPrefix(pinned.Version, "v"), components.Version, components.Version)
	return false
}

// components finds settings and overlays of components that do not exist, most likely misspelt.
func (c *landscapeCheck) components() {
	for _, owner := range slices.Sorted(maps.Keys(c.landscape.Config.Spec.Components)) {
		if !slices.Contains(ownerKinds, string(owner)) {
			continue // the schema reports it
		}
		for _, name := range sortedKeys(c.landscape.Config.Spec.Components[owner]) {
			if !isComponent(c.catalogue, path.Join(string(owner), name)) {
				field := fmt.Sprintf("spec.components.%s.%s", owner, name)
				f := c.ofConfig(field, ruleCatalogue, schemas.TypeNotSupported, "%s", c.noComponent(string(owner), name))
				if declared := c.landscape.ConfigDeclaration; declared != nil {
					f.Position = declared.KeyPosition(field)
				}
				c.add(f)
			}
		}
	}
	for _, overlay := range c.landscape.Overlays {
		component := path.Join(overlay.Owner, overlay.Component)
		if !isComponent(c.catalogue, component) {
			file := path.Join(overlay.Layer, "components", component, "kustomization.yaml")
			c.add(finding{Position: schemas.Position{File: file, Line: 1, Column: 1}, kind: schemas.TypeNotSupported, rule: ruleOverlay, message: c.noComponent(overlay.Owner, overlay.Component)})
		}
	}
}

// noComponent is the message for an unknown component, with the most likely name: a component of
// the owner, or of another owner.
func (c *landscapeCheck) noComponent(owner, name string) string {
	component := path.Join(owner, name)
	own := c.componentNames(owner)
	if len(own) == 0 {
		return fmt.Sprintf("no component %s in the catalogue", component)
	}
	if guess := suggest.Word(path.Base(name), own); guess != "" {
		return fmt.Sprintf("no component %s in the catalogue; did you mean %s/%s?", component, owner, guess)
	}
	for _, other := range ownerKinds {
		if slices.Contains(c.componentNames(other), name) {
			return fmt.Sprintf("no component %s in the catalogue; did you mean %s/%s?", component, other, name)
		}
	}
	return fmt.Sprintf("no component %s in the catalogue; components of a %s are %s", component, owner, strings.Join(own, ", "))
}

// componentNames are the names of the components of an owner.
func (c *landscapeCheck) componentNames(owner string) []string {
	dirs, err := componentDirs(c.catalogue, owner)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(dirs))
	for _, dir := range dirs {
		names = append(names, path.Base(dir))
	}
	return names
}

// Grammar of image references (distribution: reference/regexp.go).
var (
	imageRepository = regexp.MustCompile(`^(?:(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$`)
	imageTag        = regexp.MustCompile(`^(?:sha256:[0-9a-f]{64}|\w[\w.-]{0,127}(?:@sha256:[0-9a-f]{64})?)$`)
)

// seeds rejects names of the other clusters: paths of a render, kubeconfigs and inventories use the
// name of the cluster.
func (c *landscapeCheck) seeds() {
	for i := range c.landscape.Declarations {
		d := &c.landscape.Declarations[i]
		name := d.Name()
		if d.GroupVersionKind().Kind == "Seed" && (name == ClusterRuntime || name == ClusterVirtual || name == ClusterShoot) {
			c.add(declaredFinding(d, "metadata.name", ruleCluster,
				fmt.Sprintf("a Seed cannot be named %s: that is the name of another cluster of the landscape, in --kubeconfig %s=PATH and in paths of the render", name, name)))
		}
	}
}

// declaredFinding is about a field of a declaration.
func declaredFinding(d *landscapes.Declaration, field, rule, message string) finding {
	return finding{
		Position: d.Position(field), field: field, kind: schemas.TypeInvalid, rule: rule, message: message,
		object: identity{d.GroupVersionKind().Kind, d.Namespace(), d.Name()},
	}
}

// readOverlays checks every overlay by itself.
func (c *landscapeCheck) readOverlays() {
	opts := landscapeOptions(c.catalogue, c.landscape)
	opts.probes = map[string]*overlayProbe{}
	for _, overlay := range opts.Overlays {
		files, err := overlay.read()
		c.add(findingsIn(err)...)
		if err == nil {
			unread, err := files.unread()
			c.add(append(unread, findingsIn(err)...)...)
			c.sound = append(c.sound, overlay)
			opts.probes[overlay.Name] = &overlayProbe{overlay: overlay}
		}
	}
	opts.Overlays = c.sound
	opts.kinds = newKinds(opts)
	c.rendering = &opts
}

// owners builds the owners and tests overlays on their components until each part has matched.
func (c *landscapeCheck) owners(settings settings) {
	allShoots := !settings.ruled || c.shootsBeyondRules()
	wanted := func() bool {
		return allShoots || len(c.toTry("shoot")) > 0 || !c.owned["shoot"] && c.switchesOff("shoot")
	}
	for in, err := range eachOwner(c.landscape, settings, wanted) {
		c.add(findingsIn(err)...)
		if err == nil {
			c.try(in)
			// Shoots are many, and have the same components.
			if in.Owner.Kind != "shoot" || !c.owned["shoot"] {
				c.needed(in)
			}
			c.owned[in.Owner.Kind] = true
		}
	}
}

// switchesOff reports whether the landscape disables a component of owners of a kind.
func (c *landscapeCheck) switchesOff(kind string) bool {
	if c.rendering == nil {
		return false
	}
	for component, on := range c.rendering.Enabled {
		if !on && path.Dir(component) == kind {
			return true
		}
	}
	return false
}

// shootsBeyondRules reports whether Shoots may have faults that the rules about the landscape
// cannot find. Objects declared elsewhere exist for the rules, but cannot be rendered. The rules
// also ignore configuration that extensions have to merge.
func (c *landscapeCheck) shootsBeyondRules() bool {
	for _, e := range c.landscape.Config.Spec.External {
		if slices.Contains([]string{"Seed", "Project", "Namespace", "CloudProfile", "NamespacedCloudProfile"}, e.Kind) {
			return true
		}
	}
	for i := range c.landscape.Declarations {
		d := &c.landscape.Declarations[i]
		if d.GroupVersionKind().Kind == gardencorev1beta1.NamespacedCloudProfileKind {
			if config, _, _ := unstructured.NestedFieldNoCopy(d.Object().Object, "spec", "providerConfig"); config != nil {
				return true
			}
		}
	}
	return false
}

// toTry lists the components of owners of a kind that overlays change or the landscape enables.
func (c *landscapeCheck) toTry(kind string) []string {
	if c.rendering == nil {
		return nil
	}
	var components []string
	for _, overlay := range c.sound {
		if path.Dir(overlay.Component) == kind && !c.rendering.probes[overlay.Name].complete() {
			components = append(components, overlay.Component)
		}
	}
	for _, component := range sortedKeys(c.rendering.Enabled) {
		if path.Dir(component) == kind && c.rendering.Enabled[component] {
			components = append(components, component)
		}
	}
	slices.Sort(components)
	return components
}

// try renders the components of an owner that need a test.
func (c *landscapeCheck) try(in Input) {
	components := c.toTry(in.Owner.Kind)
	if len(components) == 0 {
		return
	}
	opts := *c.rendering
	opts.Only = components
	_, err := Render(in, opts)
	c.add(findingsIn(err)...)
	c.settle(in)
}

// settle warns of references in overlays that neither other components, Git nor spec.external
// satisfy, and of references that other components break.
func (c *landscapeCheck) settle(in Input) {
	var all []Object
	byCluster := map[string][]Object{}
	rendered := false
	for _, overlay := range c.sound {
		probe := c.rendering.probes[overlay.Name]
		for _, r := range probe.open {
			if c.declares(r.kind, r.name) {
				continue
			}
			if !rendered {
				rendered = true
				opts := *c.rendering
				opts.probes = nil
				result, err := Render(in, opts)
				// errors are reported elsewhere, and broken components lack their objects here
				if len(findingsIn(err)) > 0 {
					for _, other := range c.sound {
						c.rendering.probes[other.Name].open = nil
					}
					return
				}
				for _, b := range result.Bundles {
					all, byCluster[b.Cluster] = append(all, b.Objects...), append(byCluster[b.Cluster], b.Objects...)
				}
				c.addDeclared(byCluster)
			}
			among := all
			if r.alone || r.near {
				among = byCluster[r.cluster]
			}
			if r.met(among) {
				continue
			}
			if f, ok := r.at(r.missing(among)); ok {
				probe.warn(f)
			}
		}
		probe.open = nil
	}
}

// addDeclared adds the declarations in Git to the objects of their clusters.
func (c *landscapeCheck) addDeclared(byCluster map[string][]Object) {
	referenced := c.landscape.RuntimeReferences()
	for i := range c.landscape.Declarations {
		d := &c.landscape.Declarations[i]
		if d.GroupVersionKind().Group != landscapev1alpha1.SchemeGroupVersion.Group {
			cluster := landscapes.ClusterOf(d.Object(), referenced)
			byCluster[cluster] = append(byCluster[cluster], Object{d.Object(), Origin{File: d.File, Line: d.Line}})
		}
	}
}

func (c *landscapeCheck) declares(kind, name string) bool {
	return slices.ContainsFunc(c.landscape.Config.Spec.External, func(e landscapev1alpha1.ExternalObject) bool { return e.Kind == kind && e.Name == name }) ||
		slices.ContainsFunc(c.landscape.Declarations, func(d landscapes.Declaration) bool { return d.GroupVersionKind().Kind == kind && d.Name() == name })
}

// unmatched reports the parts of overlays that match nothing.
func (c *landscapeCheck) unmatched() {
	for _, overlay := range c.sound {
		c.switchedOff(overlay)
		c.leftOut(overlay)
		for _, f := range c.rendering.probes[overlay.Name].findings() {
			if f.rule == "" {
				f.rule = ruleOverlay
			}
			c.add(f)
		}
	}
}

// switchedOff warns of an overlay whose component the same landscape.yaml disables for every owner:
// it is never applied. In another layer both can be intended.
func (c *landscapeCheck) switchedOff(overlay Overlay) {
	on, given := c.rendering.Enabled[overlay.Component]
	at := c.rendering.enabledAt[overlay.Component]
	if !given || on || path.Join(path.Dir(at.File), "components", overlay.Component) != overlay.Name {
		return
	}
	owner, name := path.Split(overlay.Component)
	c.add(finding{
		Position: schemas.Position{File: path.Join(overlay.Name, "kustomization.yaml"), Line: 1, Column: 1}, kind: schemas.TypeInvalid, rule: ruleOverlay, warning: true,
		message: fmt.Sprintf("the overlay has no effect: spec.components.%s.%s.enabled switches the component off (%s:%d); switch it on, or remove the overlay", path.Clean(owner), name, at.File, at.Line),
	})
}

// leftOut warns of an overlay of the landscape (not of a layer) that is untested because no owner
// has its component.
func (c *landscapeCheck) leftOut(overlay Overlay) {
	kind := path.Dir(overlay.Component)
	if on, given := c.rendering.Enabled[overlay.Component]; given && !on || c.rendering.probes[overlay.Name].applied || !c.owned[kind] || !strings.HasPrefix(overlay.Name, "components/") || schemas.HasErrors(c.out) {
		return
	}
	c.add(finding{
		Position: schemas.Position{File: path.Join(overlay.Name, "kustomization.yaml"), Line: 1, Column: 1}, kind: schemas.TypeInvalid, rule: ruleOverlay, warning: true,
		message: fmt.Sprintf("the overlay has no effect: no %s has the component %s, which its own settings leave out; set what brings it (pergola explain %s.spec), or remove the overlay",
			strings.ToUpper(kind[:1])+kind[1:], overlay.Component, strings.ToUpper(kind[:1])+kind[1:]),
	})
}
