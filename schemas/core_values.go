// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	// templateExpressionPattern matches any template in a text.
	templateExpressionPattern = regexp.MustCompile(`\{\{[^{}]*\}\}`)
	// resourceReferencePattern matches the only template that values may have.
	resourceReferencePattern = regexp.MustCompile(`^\{\{\s*\.resources\.([a-zA-Z0-9]+)\.data\.([a-zA-Z0-9]+)\s*\}\}$`)
)

// checkDeploymentValues checks the values of a ControllerDeployment of either version.
func checkDeploymentValues(in ruleInput) []finding {
	r, object := &findingCollector{}, fieldValue{value: in.object}
	values := object.lookup("helm", "values")
	if object.lookup("type").text() == "helm" {
		values = object.lookup("providerConfig", "values").withPath("helm.values")
	}
	r.checkTemplateReferences(values, object.lookup("resources"))
	return r.findings
}

func checkExtensionValues(in ruleInput) []finding {
	r, deployment := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "deployment")
	resources := deployment.lookup("resources")
	r.checkTemplateReferences(deployment.lookup("extension", "values"), resources)
	r.checkTemplateReferences(deployment.lookup("extension", "runtimeClusterValues"), resources)
	r.checkTemplateReferences(deployment.lookup("admission", "values"), resources)
	return r.findings
}

// checkTemplateReferences checks all texts in values. Like upstream, it reports at the values as a
// whole, and each message once.
func (r *findingCollector) checkTemplateReferences(values, resources fieldValue) {
	names := map[string]bool{}
	for _, resource := range resources.items() {
		names[resource.lookup("name").text()] = true
	}
	seen := map[string]bool{}
	add := func(format string, args ...any) {
		before := len(r.findings)
		r.add(values, TypeInvalid, format, args...)
		if message := r.findings[before].message; seen[message] {
			r.findings = r.findings[:before]
		} else {
			seen[message] = true
		}
	}
	walkTexts(values.value, func(text string) {
		for _, template := range templateExpressionPattern.FindAllString(text, -1) {
			reference := resourceReferencePattern.FindStringSubmatch(template)
			if reference == nil {
				add("the template %s is not of the form {{ .resources.NAME.data.KEY }}, with letters and digits", template)
			} else if !names[reference[1]] {
				add("the template %s refers to the resource %q, which is not in %s%s", template, reference[1], resources.path, suggestionHint(reference[1], slices.Sorted(maps.Keys(names))))
			}
		}
		rest := templateExpressionPattern.ReplaceAllString(text, "")
		for _, brace := range []string{"{{", "}}"} {
			if strings.Contains(rest, brace) {
				add("a text has %q without its other half", brace)
			}
		}
	})
}

// walkTexts visits all texts in a value, except the keys of maps.
func walkTexts(value any, visit func(string)) {
	switch v := value.(type) {
	case string:
		visit(v)
	case []any:
		for _, item := range v {
			walkTexts(item, visit)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walkTexts(v[name], visit)
		}
	}
}
