// SPDX-License-Identifier: Apache-2.0

package schemas

import "github.com/Masterminds/semver/v3"

// checkGardenAPIServer checks kube-apiserver by the rules for that of a Shoot. The virtual garden
// has no nodes.
func checkGardenAPIServer(in ruleInput) []finding {
	kubernetes := fieldValue{value: in.object}.lookup("spec", "virtualCluster", "kubernetes")
	return checkKubeAPIServer(kubernetes.lookup("kubeAPIServer"), apiServerContext{
		version: kubernetes.lookup("version").text(), workerless: true, alwaysEncrypted: []string{"secrets"},
		old: fieldValue{value: in.old}.lookup("spec", "virtualCluster", "kubernetes", "kubeAPIServer"),
	})
}

func checkGardenVersionUpdate(in ruleInput) []finding {
	r := &findingCollector{}
	if in.old != nil {
		version := func(garden map[string]any) fieldValue {
			return fieldValue{value: garden}.lookup("spec", "virtualCluster", "kubernetes", "version")
		}
		r.checkKubernetesUpdate(version(in.object), version(in.old).text())
	}
	return r.findings
}

// checkKubernetesUpdate checks a change of the version of Kubernetes: never down, and one minor
// version at a time.
func (r *findingCollector) checkKubernetesUpdate(version fieldValue, before string) {
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
		r.add(version, TypeForbidden, "%s is older than the current version %s; a version never goes back", version.text(), before)
	case !is.LessThan(&tooFar):
		r.add(version, TypeForbidden, "%s skips a minor version after %s; go to %d.%d first", version.text(), before, next.Major(), next.Minor())
	}
}

func checkGardenDashboardIssuer(in ruleInput) []finding {
	r := &findingCollector{}
	if issuer := gardenComponent(in.object, "gardenerDashboard").lookup("oidcConfig", "issuerURL"); issuer.isSet() {
		r.issuerURL(issuer)
	}
	return r.findings
}

func checkGardenQuotaSelectors(in ruleInput) []finding {
	r := &findingCollector{}
	for _, quota := range gardenComponent(in.object, "gardenerControllerManager").lookup("defaultProjectQuotas").items() {
		r.checkLabelSelector(quota.lookup("projectSelector"))
	}
	return r.findings
}

func checkGardenControllerManagerGates(in ruleInput) []finding {
	r, kubernetes := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "virtualCluster", "kubernetes")
	r.checkFeatureGates(kubernetes.lookup("kubeControllerManager", "featureGates"), kubernetes.lookup("version").text())
	return r.findings
}
