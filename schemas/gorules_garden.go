package schemas

// gardenGoRules are the rules of Gardens in Go, with the reason why each is not in CUE.
func gardenGoRules() []goRule {
	return []goRule{
		{Rule: Rule{ID: "garden/networks-disjoint", Kind: "Garden", Title: "Network ranges of the runtime cluster and the virtual garden do not overlap",
			Doc:    "Addresses must be told apart by their range. In Go, because CUE has no arithmetic on addresses.",
			Source: sourceGardenNetworks, In: "go", Severity: SeverityError, Scope: scopeObject}, check: gardenNetworks},
	}
}
