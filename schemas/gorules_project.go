// SPDX-License-Identifier: Apache-2.0

package schemas

// projectGoRules lists the Go rules of Projects, with the reason why each is not in CUE.
func projectGoRules() []goRule {
	return []goRule{
		{Rule: Rule{ID: "project/dual-approval-selectors", Kind: "Project", Title: "Selectors of dual approval are label selectors",
			Doc:    "The deletion of Shoots with matching labels needs a second person. The rule is in Go because the API server's own function decides.",
			Source: "k8s.io/apimachinery/pkg/apis/meta/v1/validation", Fields: []string{"spec.dualApprovalForDeletion.selector"}, Language: "go", Severity: SeverityError, Scope: scopeObject}, check: checkDualApprovalSelectors},
	}
}

func checkDualApprovalSelectors(in ruleInput) []finding {
	r := &findingCollector{}
	for _, approval := range (fieldValue{value: in.object}).lookup("spec", "dualApprovalForDeletion").items() {
		r.checkLabelSelector(approval.lookup("selector"))
	}
	return r.findings
}
