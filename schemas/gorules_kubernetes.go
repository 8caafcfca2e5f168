package schemas

import "slices"

const (
	sourceStarts  = "ours: kube-apiserver itself, cmd/kube-apiserver and plugin/pkg/admission of Kubernetes; upstream does not look"
	sourceIgnored = "ours: what the plugins of Kubernetes read; upstream does not look"
)

// kubernetesGoRules lists rules about values that Gardener accepts and Kubernetes refuses or
// ignores, the same for Shoots and Gardens.
func kubernetesGoRules() []goRule {
	return slices.Concat(
		kubernetesRulesOf("Shoot", "shoot", "spec.kubernetes", func(in ruleInput) (tree, apiServerContext) {
			s := readShoot(in)
			return s.spec.at("kubernetes"), apiServerContext{version: s.version, workerless: len(s.workers) == 0}
		}),
		kubernetesRulesOf("Garden", "garden", "spec.virtualCluster.kubernetes", func(in ruleInput) (tree, apiServerContext) {
			kubernetes := tree{value: in.object}.at("spec", "virtualCluster", "kubernetes")
			return kubernetes, apiServerContext{version: kubernetes.at("version").text(), workerless: true}
		}),
	)
}

func kubernetesRulesOf(kind, prefix, at string, read func(ruleInput) (tree, apiServerContext)) []goRule {
	rule := func(name, title, doc, source string, severity Severity, check func(tree, apiServerContext) []finding, field string) goRule {
		return goRule{Rule: Rule{ID: prefix + "/" + name, Kind: kind, Title: title, Doc: doc, Source: source, Fields: []string{at + "." + field}, In: "go",
			Severity: severity, Scope: scopeObject}, check: func(in ruleInput) []finding { return check(read(in)) }}
	}
	return []goRule{
		rule("kube-apiserver-starts", "kube-apiserver starts with its configuration",
			"Gardener accepts more than kube-apiserver does: a new one would never come up beside the old one. Configurations of admission plugins have the type and the fields that the plugin reads."+inGoVersions+inGoApplication,
			sourceStarts, SeverityError, apiServerRefusals, "kubeAPIServer"),
		rule("kube-apiserver-ignored", "kube-apiserver heeds what its configuration says",
			"Some admission plugins drop fields that they do not know, and kubeconfigs are those of the declaration. Remove the field."+inGoApplication,
			sourceIgnored, SeverityWarning, apiServerIgnored, "kubeAPIServer"),
	}
}
