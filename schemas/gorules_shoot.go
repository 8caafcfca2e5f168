package schemas

// shootGoRules are the rules of Shoots in Go, with the reason why each is not in CUE.
func shootGoRules() []goRule {
	return []goRule{
		{Rule: Rule{ID: "shoot/networks-disjoint", Kind: "Shoot", Title: "Network ranges of a Shoot do not overlap",
			Doc:    "Addresses must be told apart by their range. In Go, because CUE has no arithmetic on addresses.",
			Source: "pkg/api/core/validation/shoot.go", In: "go", Severity: SeverityError, Scope: scopeObject}, check: shootNetworks},
	}
}
