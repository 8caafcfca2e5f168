// SPDX-License-Identifier: Apache-2.0

package schemas

import "slices"

const (
	sourceAPIServerStart = "ours: kube-apiserver itself, cmd/kube-apiserver and plugin/pkg/admission of Kubernetes; upstream does not check it"
	sourcePluginConfigs  = "ours: the configuration that plugins of Kubernetes read; upstream does not check it"
)

// kubernetesGoRules lists rules about values that Gardener accepts and Kubernetes refuses or
// ignores, the same for Shoots and Gardens.
func kubernetesGoRules() []goRule {
	return slices.Concat(
		kubernetesGoRulesFor("Shoot", "shoot", "spec.kubernetes", func(in ruleInput) (fieldValue, apiServerContext) {
			s := readShoot(in)
			return s.spec.lookup("kubernetes"), apiServerContext{version: s.version, workerless: len(s.workers) == 0}
		}),
		kubernetesGoRulesFor("Garden", "garden", "spec.virtualCluster.kubernetes", func(in ruleInput) (fieldValue, apiServerContext) {
			kubernetes := fieldValue{value: in.object}.lookup("spec", "virtualCluster", "kubernetes")
			return kubernetes, apiServerContext{version: kubernetes.lookup("version").text(), workerless: true}
		}),
	)
}

func kubernetesGoRulesFor(kind, prefix, at string, read func(ruleInput) (fieldValue, apiServerContext)) []goRule {
	rule := func(name, title, doc, source string, severity Severity, check func(fieldValue, apiServerContext) []finding, field string) goRule {
		return goRule{Rule: Rule{ID: prefix + "/" + name, Kind: kind, Title: title, Doc: doc, Source: source, Fields: []string{at + "." + field}, Language: "go",
			Severity: severity, Scope: scopeObject}, check: func(in ruleInput) []finding { return check(read(in)) }}
	}
	return []goRule{
		rule("kube-apiserver-starts", "kube-apiserver starts with its configuration",
			"Gardener accepts more than kube-apiserver does, so a new kube-apiserver would never start. Configurations of admission plugins have the type and the fields that the plugin reads."+goReasonVersions+goReasonShared,
			sourceAPIServerStart, SeverityError, checkAPIServerStart, "kubeAPIServer"),
		rule("kube-apiserver-ignored", "kube-apiserver uses every setting of its configuration",
			"Some admission plugins ignore unknown fields, and kubeconfigs come from the declaration. Remove the field."+goReasonShared,
			sourcePluginConfigs, SeverityWarning, checkIgnoredAPIServerSettings, "kubeAPIServer"),
	}
}
