package schemas

// seedGoRules are the rules of Seeds in Go, with the reason why each is not in CUE.
func seedGoRules() []goRule {
	return []goRule{
		{Rule: Rule{ID: "seed/networks-disjoint", Kind: "Seed", Title: "Network ranges of a seed do not overlap",
			Doc:    "Addresses must be told apart by their range. In Go, because CUE has no arithmetic on addresses.",
			Source: "pkg/api/core/validation/seed.go", In: "go", Severity: SeverityError, Scope: scopeObject}, check: seedNetworks},
	}
}
