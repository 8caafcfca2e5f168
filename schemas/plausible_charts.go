// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"regexp"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// This file has the warnings about charts of extensions; gorules_plausible.go lists them.

func checkSameAdmissionChart(in ruleInput) []finding {
	r := &findingCollector{}
	admission := fieldValue{value: in.object}.lookup("spec", "deployment", "admission")
	ref := func(cluster string) fieldValue { return admission.lookup(cluster, "helm", "ociRepository", "ref") }
	if runtime, virtual := ref("runtimeCluster"), ref("virtualCluster"); virtual.text() != "" && runtime.text() == virtual.text() {
		r.add(virtual, TypeDuplicate, "%q is also the chart for the runtime cluster (%s); each cluster has its own", virtual.text(), runtime.path)
	}
	return r.findings
}

// minReconcileTimeout is shorter than any cloud needs, for resources in extension registrations.
const minReconcileTimeout = 10 * time.Second

func reconcileTimeoutsCheck(at string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &findingCollector{}
		for _, field := range fieldsAtPath(fieldValue{value: in.object}, at+"[].reconcileTimeout") {
			if duration, ok := field.duration(); ok && duration < minReconcileTimeout {
				r.add(field, TypeInvalid, "%s is probably a mistake: no extension is ready so soon, so every wait for it fails", field.text())
			}
		}
		return r.findings
	}
}

// chartTag returns the version at the end of a chart reference, without a leading v.
func chartTag(ref fieldValue) string {
	name := ref.text()[strings.LastIndexByte(ref.text(), '/')+1:]
	_, tag, _ := strings.Cut(name, ":")
	tag, _, _ = strings.Cut(tag, "@")
	return strings.TrimPrefix(tag, "v")
}

// olderChartsCheck reports charts that are older than before.
func olderChartsCheck(at []string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &findingCollector{}
		for _, path := range at {
			ref, former := chartReference(in.object, path), chartReference(in.old, path)
			tag, err := semver.NewVersion(chartTag(ref))
			was, errWas := semver.NewVersion(chartTag(former))
			if err == nil && errWas == nil && tag.LessThan(was) {
				r.add(ref, TypeInvalid, "%s is older than %s, from before the change: an extension may not read what the newer one wrote", tag, was)
			}
		}
		return r.findings
	}
}

// mixedChartsCheck reports charts of one Extension with different versions.
func mixedChartsCheck(at []string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r, first := &findingCollector{}, chartReference(in.object, at[0])
		for _, path := range at[1:] {
			ref := chartReference(in.object, path)
			one, err := semver.NewVersion(chartTag(first))
			other, errOther := semver.NewVersion(chartTag(ref))
			if err == nil && errOther == nil && !one.Equal(other) {
				r.add(ref, TypeInvalid, "%s is not the version %s of %s: charts of one extension are released together", other, one, first.path)
			}
		}
		return r.findings
	}
}

func chartReference(object map[string]any, path string) fieldValue {
	return fieldValue{value: object}.lookup(strings.Split(path, ".")...).lookup("ref")
}

// chartReferenceFields lists the fields of kinds that name a chart in a registry.
var chartReferenceFields = map[string][]string{
	"ControllerDeployment": {"helm.ociRepository"},
	"Extension":            {"spec.deployment.extension.helm.ociRepository", "spec.deployment.admission.runtimeCluster.helm.ociRepository", "spec.deployment.admission.virtualCluster.helm.ociRepository"},
}

var sha256DigestPattern = regexp.MustCompile("^sha256:[0-9a-f]{64}$")

func chartVersionsCheck(at []string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &findingCollector{}
		for _, path := range at {
			ref := fieldValue{value: in.object}.lookup(strings.Split(path, ".")...).lookup("ref")
			digest := fieldValue{value: in.object}.lookup(strings.Split(path, ".")...).lookup("digest")
			if _, behind, has := strings.Cut(ref.text(), "@"); has {
				if !sha256DigestPattern.MatchString(behind) {
					r.add(ref, TypeInvalid, "%q does not end in a digest, which is sha256: and 64 hexadecimal digits", ref.text())
				}
			} else if strings.HasPrefix(digest.text(), "sha256:") && !sha256DigestPattern.MatchString(digest.text()) {
				r.add(digest, TypeInvalid, "%q is not a digest, which is sha256: and 64 hexadecimal digits", digest.text())
			}
			r.checkMutableTag(ref)
			name := ref.text()[strings.LastIndexByte(ref.text(), '/')+1:]
			if name != "" && !strings.ContainsAny(name, ":@") {
				r.add(ref, TypeInvalid, "%q has neither a tag nor a digest; write the version, as in %s:1.2.3", ref.text(), name)
			}
		}
		return r.findings
	}
}
