// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// template is an object inside another one that has to satisfy the rules of its own kind, too.
type template struct {
	kind schema.GroupVersionKind
	// at is the path of the object inside the other one.
	at          string
	object, old map[string]any
	// ownStructure means that the schema of the other object does not cover the template.
	ownStructure bool
	// isRelevant reports whether a finding counts. Its path is relative to the template.
	isRelevant func(finding) bool
}

// templatesIn returns the templates of an object.
func templatesIn(in ruleInput) []template {
	name := in.kindName()
	switch name {
	case "NamespacedCloudProfile":
		return []template{profileTemplate(in)}
	case "Gardenlet", "ManagedSeed", "ManagedSeedSet":
	default:
		return nil
	}
	var templates []template
	for _, kind := range gardenletKinds() {
		if kind.name == name {
			at := append(slices.Clone(kind.at), "config", "seedConfig")
			if seed := (fieldValue{value: in.object}).lookup(at...); seed.isSet() {
				templates = append(templates, seedTemplate(in, seed, fieldValue{value: in.old}.lookup(at...)))
			}
		}
	}
	if shoot := (fieldValue{value: in.object}).lookup("spec", "shootTemplate"); shoot.isSet() {
		templates = append(templates, shootTemplate(in, shoot, fieldValue{value: in.old}.lookup("spec", "shootTemplate")))
	}
	return templates
}

func (in ruleInput) kindName() string {
	if strings.HasPrefix(in.kind.GVK.Group, "extensions.") {
		return ""
	}
	return in.kind.GVK.Kind
}

// inheritedProfileRules lists the rules of a CloudProfile that also apply to a
// NamespacedCloudProfile.
var inheritedProfileRules = [...]string{"cloudprofile/duplicates", "cloudprofile/limits", "cloudprofile/names", "cloudprofile/storage"}

func profileTemplate(in ruleInput) template {
	return template{
		kind:       gardencorev1beta1.SchemeGroupVersion.WithKind("CloudProfile"),
		object:     templateObject(fieldValue{value: in.object}, "CloudProfile"),
		isRelevant: func(f finding) bool { return slices.Contains(inheritedProfileRules[:], f.rule) },
	}
}

var (
	// registrationSeedFieldPattern matches fields of the seed of a gardenlet that a template may
	// omit: upstream requires them when the Seed is registered. Source:
	// pkg/api/core/validation/seed.go (inTemplate).
	registrationSeedFieldPattern = regexp.MustCompile(`^spec(\.provider(\.(type|region))?|\.networks(\.(pods|services))?|\.ingress(\..*)?)?$`)
	// managedSeedDefaultedFieldPattern matches further fields, which the Shoot of a ManagedSeed
	// provides. Source: plugin/pkg/managedseed/validator.
	managedSeedDefaultedFieldPattern = regexp.MustCompile(`^spec\.(dns\.provider|backup\.provider|ingress\.domain)$`)
)

// shootDependentRules lists the fields that rules read and that the Shoot of a ManagedSeed may
// provide. Findings count once the field is known; seed/backup compares both of its fields.
var shootDependentRules = map[string][][]string{
	"seed/topology-aware-routing": {{"spec", "provider", "zones"}},
	"seed/zone-selection":         {{"spec", "provider", "zones"}},
	"seed/load-balancer-zones":    {{"spec", "provider", "zones"}},
	"seed/backup":                 {{"spec", "provider", "type"}, {"spec", "backup", "provider"}},
}

// seedTemplate returns the seed that a gardenlet registers. Upstream does not check its operation
// and name here, and drops unknown fields. A single file without a seed spec is incomplete: other
// files add to it.
func seedTemplate(in ruleInput, seed, old fieldValue) template {
	kind := in.kind.GVK.Kind
	t := template{
		kind: gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"), at: seed.path, ownStructure: true,
		object: templateObject(seed, "Seed"), old: templateObject(old, "Seed"),
	}
	hasIngress, managed := seed.lookup("spec", "ingress").isSet(), kind == "ManagedSeed"
	part := in.landscape == nil && (kind == "ManagedSeedSet" || len(seed.lookup("spec").keys()) == 0)
	t.isRelevant = func(f finding) bool {
		missing := f.typ == TypeRequired || f.typ == TypeInvalid && !isSet(seed, f.path)
		switch {
		case f.path == "metadata.name" || f.rule == "seed/operation" || part && f.typ == TypeRequired:
			return false
		case managed && (managedSeedDefaultedFieldPattern.MatchString(f.path) && missing || isShootDependent(seed, f)):
			return false
		case !missing || hasIngress && strings.HasPrefix(f.path, "spec.ingress"):
			return true
		}
		return !registrationSeedFieldPattern.MatchString(f.path)
	}
	return t
}

// isShootDependent reports whether a finding about the seed of a ManagedSeed depends on a missing
// field that the Shoot provides.
func isShootDependent(seed fieldValue, f finding) bool {
	if f.rule == "seed/backup" && f.path != "spec.backup.region" {
		return false
	}
	return slices.ContainsFunc(shootDependentRules[f.rule], func(field []string) bool { return !seed.lookup(field...).isSet() })
}

// isSet reports whether a value exists at a path without lists.
func isSet(object fieldValue, path string) bool {
	return object.lookup(strings.Split(path, ".")...).isSet()
}

// copiedShootFieldPattern matches fields of a Shoot that are known only when a Shoot is made of the
// template.
var copiedShootFieldPattern = regexp.MustCompile(`^(metadata\.(name|namespace)|spec\.provider\.workers\[\d+\]\.machine\.image(\..*)?)$`)

// shootTemplate returns the Shoot that a ManagedSeedSet makes. A single file may be incomplete:
// other files add to it.
func shootTemplate(in ruleInput, shoot, old fieldValue) template {
	return template{
		kind: gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"), at: shoot.path,
		object: templateObject(shoot, "Shoot"), old: templateObject(old, "Shoot"),
		isRelevant: func(f finding) bool {
			return f.path != "metadata.name" && f.path != "metadata.namespace" && !(f.typ == TypeRequired && (in.landscape == nil || copiedShootFieldPattern.MatchString(f.path)))
		},
	}
}

// templateObject completes a template to an object; the result is nil for an unset one.
func templateObject(value fieldValue, kind string) map[string]any {
	if !value.isSet() {
		return nil
	}
	metadata := map[string]any{"name": "template"}
	if kind == "Shoot" {
		metadata["namespace"] = "garden"
	}
	for _, name := range []string{"labels", "annotations"} {
		if given := value.lookup("metadata", name); given.isSet() {
			metadata[name] = given.value
		}
	}
	object := map[string]any{"apiVersion": gardencorev1beta1.SchemeGroupVersion.String(), "kind": kind, "metadata": metadata}
	if spec := value.lookup("spec"); spec.isSet() {
		object["spec"] = spec.value
	}
	return object
}

// checkTemplates returns the findings about the templates of an object.
func (w *worker) checkTemplates(in ruleInput) ([]finding, error) {
	var findings []finding
	for _, t := range templatesIn(in) {
		inside, err := w.checkTemplate(t, in.landscape)
		if err != nil {
			return nil, err
		}
		findings = append(findings, inside...)
	}
	return findings, nil
}

func (w *worker) checkTemplate(t template, landscape *landscapeIndex) ([]finding, error) {
	kind, err := w.sources.kinds.get(t.kind)
	if err != nil {
		return nil, err
	}
	clean, _ := kind.Normalise(t.object)
	input := ruleInput{kind: kind, object: clean, old: t.old}
	if t.old != nil {
		input.old, _ = kind.Normalise(t.old)
	}
	broken := structuralFindings(kind, clean)
	// Rules of a landscape are about applied objects, which a template is not.
	ruled, err := w.checkRules(input, len(broken) > 0)
	if err != nil {
		return nil, err
	}
	input.landscape = landscape
	findings := append(ruled, checkGoRules(input)...)
	// otherwise the schema of the other object covers the template
	if t.ownStructure {
		findings = dropFollowUps(findings, broken)
		findings = append(dropMissingReportedByRules(kind, broken, findings), findings...)
	}
	findings = slices.DeleteFunc(findings, func(f finding) bool { return !t.isRelevant(f) })
	for i := range findings {
		if findings[i].rule == RuleStructure && findings[i].typ == TypeForbidden {
			findings[i].severity = SeverityWarning // the API drops unknown fields there
		}
		findings[i].path = joinPath(t.at, findings[i].path)
		if findings[i].documentPath != "" {
			findings[i].documentPath = joinPath(t.at, findings[i].documentPath)
		}
	}
	return findings, nil
}
