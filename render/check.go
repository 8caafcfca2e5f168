// SPDX-License-Identifier: Apache-2.0

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
	if l.IsLayerMissing {
		return nil
	}
	c := landscapeCheck{catalogue: catalogue, landscape: l, seenOwnerKinds: map[string]bool{}}
	c.checkSeedNames()
	if c.checkCatalogueVersion() {
		c.checkComponents()
		c.checkImages()
		c.checkOverlays()
		c.checkHealthFields()
	}
	c.checkOwners(settingsOf(settings))
	c.reportUnmatched()
	return sortedViolations(c.violations)
}

type landscapeCheck struct {
	catalogue  fs.FS
	landscape  *landscapes.Landscape
	violations []schemas.Violation

	// options are the options to render with; they are nil if the landscape is for another
	// catalogue; validOverlays are the overlays to test.
	options       *Options
	validOverlays []Overlay
	// seenOwnerKinds are the kinds of owners that exist.
	seenOwnerKinds map[string]bool
}

func (c *landscapeCheck) add(list ...finding) {
	for _, f := range list {
		if f.rule != "" {
			c.violations = append(c.violations, f.violation())
		}
	}
}

// configError reports a field of landscape.yaml.
func (c *landscapeCheck) configError(field, rule string, kind schemas.ViolationType, format string, args ...any) {
	c.add(c.configFinding(field, rule, kind, format, args...))
}

// configWarning reports a field of landscape.yaml that may be intended.
func (c *landscapeCheck) configWarning(field, rule string, kind schemas.ViolationType, format string, args ...any) {
	f := c.configFinding(field, rule, kind, format, args...)
	f.warning = true
	c.add(f)
}

func (c *landscapeCheck) configFinding(field, rule string, kind schemas.ViolationType, format string, args ...any) finding {
	return finding{
		Position: configPosition(c.landscape, field), field: field, kind: kind, rule: rule, message: fmt.Sprintf(format, args...),
		object: objectIdentity{kind: "Landscape", name: c.landscape.Config.Name},
	}
}

// checkCatalogueVersion rejects a landscape for a different catalogue than the built-in one: no one
// has reviewed its render. A landscape without a version uses the built-in catalogue.
func (c *landscapeCheck) checkCatalogueVersion() bool {
	pinned := c.landscape.Config.Spec.Catalogue
	if pinned == nil || strings.TrimPrefix(pinned.Version, "v") == components.Version {
		return true
	}
	c.configError("spec.catalogue.version", ruleCatalogue, schemas.TypeNotSupported,
		"the landscape needs catalogue %s, but this program has %s: use that version, or set %s and review the changes (golden --update, then git diff)",
		strings.TrimPrefix(pinned.Version, "v"), components.Version, components.Version)
	return false
}

// checkComponents finds settings and overlays of components that do not exist, most likely
// misspelt.
func (c *landscapeCheck) checkComponents() {
	for _, owner := range slices.Sorted(maps.Keys(c.landscape.Config.Spec.Components)) {
		if !slices.Contains(ownerKinds, string(owner)) {
			continue // the schema reports it
		}
		for _, name := range sortedKeys(c.landscape.Config.Spec.Components[owner]) {
			if !isComponent(c.catalogue, path.Join(string(owner), name)) {
				field := fmt.Sprintf("spec.components.%s.%s", owner, name)
				f := c.configFinding(field, ruleCatalogue, schemas.TypeNotSupported, "%s", c.unknownComponentMessage(string(owner), name))
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
			c.add(finding{Position: schemas.Position{File: file, Line: 1, Column: 1}, kind: schemas.TypeNotSupported, rule: ruleOverlay, message: c.unknownComponentMessage(overlay.Owner, overlay.Component)})
		}
	}
}

// unknownComponentMessage is the message for an unknown component, with the most likely name: a
// component of the owner, or of another owner.
func (c *landscapeCheck) unknownComponentMessage(owner, name string) string {
	component := path.Join(owner, name)
	own := c.componentNames(owner)
	if len(own) == 0 {
		return fmt.Sprintf("no component %s in the catalogue", component)
	}
	if guess := suggest.Closest(path.Base(name), own); guess != "" {
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
	imageRepositoryPattern = regexp.MustCompile(`^(?:(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$`)
	imageTagPattern        = regexp.MustCompile(`^(?:sha256:[0-9a-f]{64}|\w[\w.-]{0,127}(?:@sha256:[0-9a-f]{64})?)$`)
)

// checkSeedNames rejects names of the other clusters: paths of a render, kubeconfigs and
// inventories use the name of the cluster.
func (c *landscapeCheck) checkSeedNames() {
	for i := range c.landscape.Declarations {
		d := &c.landscape.Declarations[i]
		name := d.Name()
		if d.GroupVersionKind().Kind == "Seed" && (name == ClusterRuntime || name == ClusterVirtual || name == ClusterShoot) {
			c.add(declaredFinding(d, "metadata.name", ruleCluster,
				fmt.Sprintf("a Seed cannot be named %s: another cluster of the landscape has this name, in --kubeconfig %s=PATH and in paths of the render", name, name)))
		}
	}
}

// declaredFinding is about a field of a declaration.
func declaredFinding(d *landscapes.Declaration, field, rule, message string) finding {
	return finding{
		Position: d.Position(field), field: field, kind: schemas.TypeInvalid, rule: rule, message: message,
		object: objectIdentity{d.GroupVersionKind().Kind, d.Namespace(), d.Name()},
	}
}

// checkOverlays checks every overlay separately.
func (c *landscapeCheck) checkOverlays() {
	opts := landscapeOptions(c.catalogue, c.landscape)
	opts.probes = map[string]*overlayUsage{}
	for _, overlay := range opts.Overlays {
		files, err := overlay.loadFiles()
		c.add(findingsIn(err)...)
		if err == nil {
			unread, err := files.unusedFiles()
			c.add(append(unread, findingsIn(err)...)...)
			c.validOverlays = append(c.validOverlays, overlay)
			opts.probes[overlay.Name] = &overlayUsage{overlay: overlay}
		}
	}
	opts.Overlays = c.validOverlays
	opts.kinds = newKindSchemas(opts)
	c.options = &opts
}

// checkOwners builds the owners and tests overlays on their components until each part has matched.
func (c *landscapeCheck) checkOwners(settings settings) {
	allShoots := !settings.rulesPassed || c.hasShootsBeyondRules()
	wanted := func() bool {
		return allShoots || len(c.componentsToTest("shoot")) > 0 || !c.seenOwnerKinds["shoot"] && c.hasDisabledComponent("shoot")
	}
	for in, err := range eachOwner(c.landscape, settings, wanted) {
		c.add(findingsIn(err)...)
		if err == nil {
			c.testComponents(in)
			// Shoots are many, and have the same components.
			if in.Owner.Kind != "shoot" || !c.seenOwnerKinds["shoot"] {
				c.checkDisabledComponents(in)
			}
			c.seenOwnerKinds[in.Owner.Kind] = true
		}
	}
}

// hasDisabledComponent reports whether the landscape disables a component of owners of a kind.
func (c *landscapeCheck) hasDisabledComponent(kind string) bool {
	if c.options == nil {
		return false
	}
	for component, on := range c.options.Enabled {
		if !on && path.Dir(component) == kind {
			return true
		}
	}
	return false
}

// hasShootsBeyondRules reports whether Shoots may have faults that the rules about the landscape
// cannot find. Objects declared elsewhere exist for the rules, but cannot be rendered. The rules
// also ignore configuration that extensions have to merge.
func (c *landscapeCheck) hasShootsBeyondRules() bool {
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

// componentsToTest lists the components of owners of a kind that overlays change or the landscape
// enables.
func (c *landscapeCheck) componentsToTest(kind string) []string {
	if c.options == nil {
		return nil
	}
	var components []string
	for _, overlay := range c.validOverlays {
		if path.Dir(overlay.Component) == kind && !c.options.probes[overlay.Name].isComplete() {
			components = append(components, overlay.Component)
		}
	}
	for _, component := range sortedKeys(c.options.Enabled) {
		if path.Dir(component) == kind && c.options.Enabled[component] {
			components = append(components, component)
		}
	}
	slices.Sort(components)
	return components
}

// testComponents renders the components of an owner that need a test.
func (c *landscapeCheck) testComponents(in Input) {
	components := c.componentsToTest(in.Owner.Kind)
	if len(components) == 0 {
		return
	}
	opts := *c.options
	opts.OnlyComponents = components
	_, err := Render(in, opts)
	c.add(findingsIn(err)...)
	c.checkOpenReferences(in)
}

// checkOpenReferences warns of references in overlays that neither other components, Git nor
// spec.external satisfy, and of references that other components break.
func (c *landscapeCheck) checkOpenReferences(in Input) {
	var all []Object
	byCluster := map[string][]Object{}
	rendered := false
	for _, overlay := range c.validOverlays {
		probe := c.options.probes[overlay.Name]
		for _, r := range probe.openReferences {
			if c.isDeclared(r.kind, r.name) {
				continue
			}
			if !rendered {
				rendered = true
				opts := *c.options
				opts.probes = nil
				result, err := Render(in, opts)
				// errors are reported elsewhere, and broken components lack their objects here
				if len(findingsIn(err)) > 0 {
					for _, other := range c.validOverlays {
						c.options.probes[other.Name].openReferences = nil
					}
					return
				}
				for _, b := range result.Bundles {
					all, byCluster[b.Cluster] = append(all, b.Objects...), append(byCluster[b.Cluster], b.Objects...)
				}
				c.addDeclared(byCluster)
			}
			among := all
			if r.isExclusive || r.hasTypoHint {
				among = byCluster[r.cluster]
			}
			if r.isMet(among) {
				continue
			}
			if f, ok := r.findingFor(r.missingMessage(among)); ok {
				probe.warn(f)
			}
		}
		probe.openReferences = nil
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

func (c *landscapeCheck) isDeclared(kind, name string) bool {
	return slices.ContainsFunc(c.landscape.Config.Spec.External, func(e landscapev1alpha1.ExternalObject) bool { return e.Kind == kind && e.Name == name }) ||
		slices.ContainsFunc(c.landscape.Declarations, func(d landscapes.Declaration) bool { return d.GroupVersionKind().Kind == kind && d.Name() == name })
}

// reportUnmatched reports the parts of overlays that match nothing.
func (c *landscapeCheck) reportUnmatched() {
	for _, overlay := range c.validOverlays {
		c.warnOfDisabledComponent(overlay)
		c.warnOfMissingComponent(overlay)
		for _, f := range c.options.probes[overlay.Name].findings() {
			if f.rule == "" {
				f.rule = ruleOverlay
			}
			c.add(f)
		}
	}
}

// warnOfDisabledComponent warns of an overlay whose component the same landscape.yaml disables for
// every owner: it is never applied. In another layer both can be intended.
func (c *landscapeCheck) warnOfDisabledComponent(overlay Overlay) {
	on, given := c.options.Enabled[overlay.Component]
	at := c.options.enabledPositions[overlay.Component]
	if !given || on || path.Join(path.Dir(at.File), "components", overlay.Component) != overlay.Name {
		return
	}
	owner, name := path.Split(overlay.Component)
	c.add(finding{
		Position: schemas.Position{File: path.Join(overlay.Name, "kustomization.yaml"), Line: 1, Column: 1}, kind: schemas.TypeInvalid, rule: ruleOverlay, warning: true,
		message: fmt.Sprintf("the overlay has no effect: spec.components.%s.%s.enabled switches the component off (%s:%d); switch it on, or remove the overlay", path.Clean(owner), name, at.File, at.Line),
	})
}

// warnOfMissingComponent warns of an overlay of the landscape (not of a layer) that is untested
// because no owner has its component.
func (c *landscapeCheck) warnOfMissingComponent(overlay Overlay) {
	kind := path.Dir(overlay.Component)
	if on, given := c.options.Enabled[overlay.Component]; given && !on || c.options.probes[overlay.Name].applied || !c.seenOwnerKinds[kind] || !strings.HasPrefix(overlay.Name, "components/") || schemas.HasErrors(c.violations) {
		return
	}
	c.add(finding{
		Position: schemas.Position{File: path.Join(overlay.Name, "kustomization.yaml"), Line: 1, Column: 1}, kind: schemas.TypeInvalid, rule: ruleOverlay, warning: true,
		message: fmt.Sprintf("the overlay has no effect: no %s has the component %s, because its settings disable it; enable it (pergola explain %s.spec), or remove the overlay",
			strings.ToUpper(kind[:1])+kind[1:], overlay.Component, strings.ToUpper(kind[:1])+kind[1:]),
	})
}
