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
	// structure: the schema of the other object does not cover the template.
	structure bool
	// keep reports whether a finding counts. Its path is relative to the template.
	keep func(finding) bool
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
			if seed := (tree{value: in.object}).at(at...); seed.set() {
				templates = append(templates, seedTemplate(in, seed, tree{value: in.old}.at(at...)))
			}
		}
	}
	if shoot := (tree{value: in.object}).at("spec", "shootTemplate"); shoot.set() {
		templates = append(templates, shootTemplate(in, shoot, tree{value: in.old}.at("spec", "shootTemplate")))
	}
	return templates
}

func (in ruleInput) kindName() string {
	if strings.HasPrefix(in.kind.GVK.Group, "extensions.") {
		return ""
	}
	return in.kind.GVK.Kind
}

// profileRules lists the rules of a CloudProfile that also apply to a NamespacedCloudProfile.
var profileRules = [...]string{"cloudprofile/duplicates", "cloudprofile/limits", "cloudprofile/names", "cloudprofile/storage"}

func profileTemplate(in ruleInput) template {
	return template{
		kind:   gardencorev1beta1.SchemeGroupVersion.WithKind("CloudProfile"),
		object: inside(tree{value: in.object}, "CloudProfile"),
		keep:   func(f finding) bool { return slices.Contains(profileRules[:], f.rule) },
	}
}

var (
	// leftToTheSeed matches fields of the seed of a gardenlet that a template may omit: upstream
	// requires them when the Seed is registered. Source: pkg/api/core/validation/seed.go
	// (inTemplate).
	leftToTheSeed = regexp.MustCompile(`^spec(\.provider(\.(type|region))?|\.networks(\.(pods|services))?|\.ingress(\..*)?)?$`)
	// leftToTheManagedSeed matches further fields, which the Shoot of a ManagedSeed provides.
	// Source: plugin/pkg/managedseed/validator.
	leftToTheManagedSeed = regexp.MustCompile(`^spec\.(dns\.provider|backup\.provider|ingress\.domain)$`)
)

// judgedWithShoot lists the fields that rules read and that the Shoot of a ManagedSeed may provide.
// Findings count once the field is known; seed/backup compares both of its fields.
var judgedWithShoot = map[string][][]string{
	"seed/topology-aware-routing": {{"spec", "provider", "zones"}},
	"seed/zone-selection":         {{"spec", "provider", "zones"}},
	"seed/load-balancer-zones":    {{"spec", "provider", "zones"}},
	"seed/backup":                 {{"spec", "provider", "type"}, {"spec", "backup", "provider"}},
}

// seedTemplate returns the seed that a gardenlet registers. Upstream does not check its operation
// and name here, and drops unknown fields. A single file without a seed spec is incomplete: other
// files add to it.
func seedTemplate(in ruleInput, seed, old tree) template {
	kind := in.kind.GVK.Kind
	t := template{
		kind: gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"), at: seed.path, structure: true,
		object: inside(seed, "Seed"), old: inside(old, "Seed"),
	}
	hasIngress, managed := seed.at("spec", "ingress").set(), kind == "ManagedSeed"
	part := in.landscape == nil && (kind == "ManagedSeedSet" || len(seed.at("spec").keys()) == 0)
	t.keep = func(f finding) bool {
		missing := f.typ == TypeRequired || f.typ == TypeInvalid && !isSet(seed, f.path)
		switch {
		case f.path == "metadata.name" || f.rule == "seed/operation" || part && f.typ == TypeRequired:
			return false
		case managed && (leftToTheManagedSeed.MatchString(f.path) && missing || waitsForShoot(seed, f)):
			return false
		case !missing || hasIngress && strings.HasPrefix(f.path, "spec.ingress"):
			return true
		}
		return !leftToTheSeed.MatchString(f.path)
	}
	return t
}

// waitsForShoot reports whether a finding about the seed of a ManagedSeed depends on a missing
// field that the Shoot provides.
func waitsForShoot(seed tree, f finding) bool {
	if f.rule == "seed/backup" && f.path != "spec.backup.region" {
		return false
	}
	return slices.ContainsFunc(judgedWithShoot[f.rule], func(field []string) bool { return !seed.at(field...).set() })
}

// isSet reports whether a value exists at a path without lists.
func isSet(object tree, path string) bool {
	return object.at(strings.Split(path, ".")...).set()
}

// leftToTheCopy matches fields of a Shoot that are known only when a Shoot is made of the template.
var leftToTheCopy = regexp.MustCompile(`^(metadata\.(name|namespace)|spec\.provider\.workers\[\d+\]\.machine\.image(\..*)?)$`)

// shootTemplate returns the Shoot that a ManagedSeedSet makes. A single file may be incomplete:
// other files add to it.
func shootTemplate(in ruleInput, shoot, old tree) template {
	return template{
		kind: gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"), at: shoot.path,
		object: inside(shoot, "Shoot"), old: inside(old, "Shoot"),
		keep: func(f finding) bool {
			return f.path != "metadata.name" && f.path != "metadata.namespace" && !(f.typ == TypeRequired && (in.landscape == nil || leftToTheCopy.MatchString(f.path)))
		},
	}
}

// inside completes a template to an object; nil for an unset one.
func inside(value tree, kind string) map[string]any {
	if !value.set() {
		return nil
	}
	metadata := map[string]any{"name": "template"}
	if kind == "Shoot" {
		metadata["namespace"] = "garden"
	}
	for _, name := range []string{"labels", "annotations"} {
		if given := value.at("metadata", name); given.set() {
			metadata[name] = given.value
		}
	}
	object := map[string]any{"apiVersion": gardencorev1beta1.SchemeGroupVersion.String(), "kind": kind, "metadata": metadata}
	if spec := value.at("spec"); spec.set() {
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

func (w *worker) checkTemplate(t template, landscape *surroundings) ([]finding, error) {
	kind, err := w.sources.kinds.get(t.kind)
	if err != nil {
		return nil, err
	}
	clean, _ := kind.Normalise(t.object)
	input := ruleInput{kind: kind, object: clean, old: t.old}
	if t.old != nil {
		input.old, _ = kind.Normalise(t.old)
	}
	broken := structural(kind, clean)
	// Rules of a landscape are about applied objects, which a template is not.
	ruled, err := w.checkRules(input, len(broken) > 0)
	if err != nil {
		return nil, err
	}
	input.landscape = landscape
	findings := append(ruled, checkGoRules(input)...)
	// otherwise the schema of the other object covers the template
	if t.structure {
		findings = withoutFollowUps(findings, broken)
		findings = append(withoutSaidBetter(kind, broken, findings), findings...)
	}
	findings = slices.DeleteFunc(findings, func(f finding) bool { return !t.keep(f) })
	for i := range findings {
		if findings[i].rule == RuleStructure && findings[i].typ == TypeForbidden {
			findings[i].severity = SeverityWarning // the API drops unknown fields there
		}
		findings[i].path = join(t.at, findings[i].path)
		if findings[i].at != "" {
			findings[i].at = join(t.at, findings[i].at)
		}
	}
	return findings, nil
}
