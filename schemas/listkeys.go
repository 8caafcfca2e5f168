// SPDX-License-Identifier: Apache-2.0

package schemas

// listKeyRules come last, so that a rule with a more precise finding about a list takes precedence.
func listKeyRules() []goRule {
	return []goRule{
		{Rule: Rule{ID: "any/list-keys", Kind: "*", Title: "A list with keys has each key once",
			Doc:    "The API merges such lists item by item and refuses two items with one key. The rule is in Go because the lists are those of the definitions.",
			Source: "x-kubernetes-list-type and x-kubernetes-list-map-keys of api/crds", Fields: []string{""}, Language: "go", Severity: SeverityError, Scope: scopeObject}, check: checkListKeys},
	}
}

func checkListKeys(in ruleInput) []finding {
	var findings []finding
	for _, f := range in.kind.Root.DuplicateItems(in.object) {
		findings = append(findings, finding{path: f.Path.String(), typ: ViolationType(f.Type), message: f.Message})
	}
	return findings
}
