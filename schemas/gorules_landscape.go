package schemas

import "slices"

// landscapeGoRules are the rules of the Landscape itself in Go, with the reason why each is not in CUE.
func landscapeGoRules() []goRule {
	return []goRule{
		{Rule: Rule{ID: "landscape/external-kinds", Kind: "Landscape", Title: "Objects outside of the landscape are of kinds that it can refer to",
			Doc:    "An entry of another kind, or of a misspelt one, stands for nothing: references to the object stay errors. In Go, because the kinds are those that have a schema.",
			Source: "ours", Fields: []string{"spec.external.kind"}, In: "go", Severity: SeverityError, Scope: scopeObject}, check: externalKinds},
	}
}

func externalKinds(in ruleInput) []finding {
	r := &report{}
	var known []string
	for _, gvk := range embeddedKinds().known {
		if gvk.Kind != "Landscape" {
			known = append(known, gvk.Kind)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, external := range (tree{value: in.object}).at("spec", "external").items() {
		if kind := external.at("kind"); kind.text() != "" && !slices.Contains(known, kind.text()) {
			hint := "; it is the kind of an object that declarations refer to, such as Secret, ConfigMap, CloudProfile or Seed"
			if better := Suggest(kind.text(), known); better != "" {
				hint = "; did you mean \"" + better + "\"?"
			}
			r.add(kind, TypeNotSupported, "%q is no kind that is known%s", kind.text(), hint)
		}
	}
	return r.findings
}
