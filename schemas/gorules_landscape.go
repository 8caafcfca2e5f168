// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"maps"
	"slices"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// componentKinds maps the kinds of objects that components provide for others (see
// landscape/component-needed), and that no declaration refers to, to whether they are namespaced.
var componentKinds = map[string]bool{
	"CustomResourceDefinition": false,
	"Deployment":               true,
	"PriorityClass":            false,
	"Service":                  true,
	"ServiceAccount":           true,
}

// landscapeGoRules lists the Go rules of the Landscape, with the reason why each is not in CUE.
func landscapeGoRules() []goRule {
	return []goRule{
		{Rule: Rule{ID: "landscape/external-kinds", Kind: "Landscape", Title: "Objects outside of the landscape are of kinds that it can refer to",
			Doc:    "An entry of another or misspelt kind has no effect: references to the object stay errors. The same holds for an entry without a namespace, if its kind is namespaced. The rule is in Go because the kinds come from the schemas and the components.",
			Source: "ours", Fields: []string{"spec.external.kind", "spec.external.namespace"}, Language: "go", Severity: SeverityError, Scope: scopeObject}, check: checkExternalKinds},
		newGoWarning("Landscape", "external-extensions", "Extensions that are made elsewhere have the name of a provider that is used",
			"Published extensions are named after what they serve, such as provider-aws. The rule is in Go because the message names the intended one.",
			"ours", checkExternalExtensions).withFields("spec.external"),
		newGoWarning("Landscape", "empty-texts", "A text of landscape.yaml is not empty",
			"An empty text counts as unset: an empty context is the current context of the kubeconfig. The rule is in Go because it is about every text.",
			"ours", checkLandscapeEmptyTexts).withFields("spec"),
	}
}

func checkExternalKinds(in ruleInput) []finding {
	r := &findingCollector{}
	kinds := embeddedKinds()
	known := slices.Collect(maps.Keys(componentKinds))
	for _, gvk := range kinds.gvks {
		if gvk.Kind != "Landscape" {
			known = append(known, gvk.Kind)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, external := range (fieldValue{value: in.object}).lookup("spec", "external").items() {
		kind, namespace := external.lookup("kind"), external.lookup("namespace")
		if kind.text() == "" {
			continue
		}
		if !slices.Contains(known, kind.text()) {
			hint := "; it is the kind of an object that declarations or components refer to, such as Secret, CloudProfile, Seed or PriorityClass"
			if better := suggest.Closest(kind.text(), known); better != "" {
				hint = "; did you mean \"" + better + "\"?"
			}
			r.add(kind, TypeNotSupported, "%q is not a known kind%s", kind.text(), hint)
			continue
		}
		namespaced, clustered := kindScopes(kinds, kind.text())
		if namespace.text() == "" && !clustered {
			r.add(namespace, TypeRequired, "it matches no object, because %s is namespaced; set the namespace, or \"*\" for all", kind.text())
		}
		if namespace.text() != "" && !namespaced {
			r.add(namespace, TypeForbidden, "it matches no object, because objects of kind %s have no namespace; remove it", kind.text())
		}
	}
	return r.findings
}

// kindScopes reports whether kinds of a name are namespaced, and whether any are cluster-scoped. A
// kind that cannot be read counts as both.
func kindScopes(kinds *kindSet, name string) (namespaced, clustered bool) {
	if inNamespaces, ok := componentKinds[name]; ok {
		return inNamespaces, !inNamespaces
	}
	for _, gvk := range kinds.gvks {
		if gvk.Kind != name {
			continue
		}
		kind, err := kinds.get(gvk)
		if err != nil {
			return true, true
		}
		namespaced, clustered = namespaced || kind.Namespaced, clustered || !kind.Namespaced
	}
	return namespaced, clustered
}

func checkLandscapeEmptyTexts(in ruleInput) []finding {
	r := &findingCollector{}
	var walk func(fieldValue)
	walk = func(t fieldValue) {
		for _, name := range t.keys() {
			if field := t.lookup(name); name == "health" {
				continue // compiling its rules finds more
			} else if field.value == "" {
				r.add(field, TypeInvalid, "is empty, which counts as unset; write a value, or remove the line")
			} else {
				walk(field)
			}
		}
		for _, item := range t.items() {
			walk(item)
		}
	}
	walk(fieldValue{value: in.object}.lookup("spec"))
	return r.findings
}

func checkExternalExtensions(in ruleInput) []finding {
	r := &findingCollector{}
	if in.landscape == nil {
		return nil
	}
	var known []string
	// the names are sorted below
	for kind, path := range map[string][]string{"CloudProfile": {"spec", "type"}, "Seed": {"spec", "provider", "type"}} {
		for _, object := range in.landscape.objects(kind) {
			if typ := (fieldValue{value: object}).lookup(path...).text(); typ != "" {
				known = append(known, "provider-"+typ)
			}
		}
	}
	slices.Sort(known)
	for _, entry := range fieldsAtPath(fieldValue{value: in.object}, "spec.external[]") {
		name := entry.lookup("name")
		if !slices.Contains([]string{"ControllerRegistration", "Extension"}, entry.lookup("kind").text()) || slices.Contains(known, name.text()) {
			continue
		}
		if guess := suggest.ClosestWithin(name.text(), known, 2); guess != "" {
			r.add(name, TypeNotSupported, "no Seed and no cloud profile has the provider of %q; did you mean %q?", name.text(), guess)
		}
	}
	return r.findings
}
