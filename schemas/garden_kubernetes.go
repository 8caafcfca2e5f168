package schemas

import "github.com/Masterminds/semver/v3"

// gardenAPIServer checks kube-apiserver by the rules for that of a Shoot. The virtual garden has no
// nodes.
func gardenAPIServer(in ruleInput) []finding {
	kubernetes := tree{value: in.object}.at("spec", "virtualCluster", "kubernetes")
	return kubeAPIServerFindings(kubernetes.at("kubeAPIServer"), apiServerContext{
		version: kubernetes.at("version").text(), workerless: true, alwaysEncrypted: []string{"secrets"},
		old: tree{value: in.old}.at("spec", "virtualCluster", "kubernetes", "kubeAPIServer"),
	})
}

func gardenVersionUpdate(in ruleInput) []finding {
	r := &report{}
	if in.old != nil {
		version := func(garden map[string]any) tree {
			return tree{value: garden}.at("spec", "virtualCluster", "kubernetes", "version")
		}
		r.kubernetesUpdate(version(in.object), version(in.old).text())
	}
	return r.findings
}

// kubernetesUpdate checks a change of the version of Kubernetes: never down, and one minor version
// at a time.
func (r *report) kubernetesUpdate(version tree, before string) {
	was, err := semver.NewVersion(before)
	if err != nil {
		return
	}
	is, err := semver.NewVersion(version.text())
	if err != nil {
		return
	}
	next := was.IncMinor()
	tooFar := next.IncMinor()
	switch {
	case is.LessThan(was):
		r.add(version, TypeForbidden, "%s is older than %s, which is there; a version never goes back", version.text(), before)
	case !is.LessThan(&tooFar):
		r.add(version, TypeForbidden, "%s skips a minor version after %s; go to %d.%d first", version.text(), before, next.Major(), next.Minor())
	}
}

func gardenDashboardIssuer(in ruleInput) []finding {
	r := &report{}
	if issuer := gardenComponent(in.object, "gardenerDashboard").at("oidcConfig", "issuerURL"); issuer.set() {
		r.issuerURL(issuer)
	}
	return r.findings
}

func gardenQuotaSelectors(in ruleInput) []finding {
	r := &report{}
	for _, quota := range gardenComponent(in.object, "gardenerControllerManager").at("defaultProjectQuotas").items() {
		r.labelSelector(quota.at("projectSelector"))
	}
	return r.findings
}

func gardenControllerManagerGates(in ruleInput) []finding {
	r, kubernetes := &report{}, tree{value: in.object}.at("spec", "virtualCluster", "kubernetes")
	r.featureGates(kubernetes.at("kubeControllerManager", "featureGates"), kubernetes.at("version").text())
	return r.findings
}
