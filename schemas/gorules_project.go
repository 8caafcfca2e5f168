package schemas

// projectGoRules lists the Go rules of Projects, with the reason why each is not in CUE.
func projectGoRules() []goRule {
	return []goRule{
		{Rule: Rule{ID: "project/dual-approval-selectors", Kind: "Project", Title: "Selectors of dual approval are selectors of labels",
			Doc:    "The deletion of Shoots with matching labels needs a second person. In Go, because the API server's own function decides.",
			Source: "k8s.io/apimachinery/pkg/apis/meta/v1/validation", Fields: []string{"spec.dualApprovalForDeletion.selector"}, In: "go", Severity: SeverityError, Scope: scopeObject}, check: dualApprovalSelectors},
	}
}

func dualApprovalSelectors(in ruleInput) []finding {
	r := &report{}
	for _, approval := range (tree{value: in.object}).at("spec", "dualApprovalForDeletion").items() {
		r.labelSelector(approval.at("selector"))
	}
	return r.findings
}
