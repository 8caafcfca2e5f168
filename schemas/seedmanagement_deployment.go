// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"reflect"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (r *findingCollector) checkGardenletDeployment(deployment fieldValue) {
	r.requireNonNegative(deployment.lookup("replicaCount"), deployment.lookup("revisionHistoryLimit"))
	if account := deployment.lookup("serviceAccountName"); account.isSet() && len(apivalidation.ValidateServiceAccountName(account.text(), false)) > 0 {
		r.add(account, TypeInvalid, "%q %s", account.text(), dnsNameMessage)
	}
	r.checkGardenletImage(deployment.lookup("image"))
	r.checkRequestsWithinLimits(deployment.lookup("resources"))
	podLabels, podAnnotations := deployment.lookup("podLabels"), deployment.lookup("podAnnotations")
	r.addFieldErrors(metav1validation.ValidateLabels(podLabels.textMap(), field.NewPath(podLabels.path)))
	r.addFieldErrors(apivalidation.ValidateAnnotations(podAnnotations.textMap(), field.NewPath(podAnnotations.path)))
}

// checkGardenletDeploymentPlausibility reports a deployment without a gardenlet, or with a
// gardenlet that can change without a change in Git.
func checkGardenletDeploymentPlausibility(in ruleInput, at []string) []finding {
	r, deployment := &findingCollector{}, fieldValue{value: in.object}.lookup(at...).lookup("deployment")
	if replicas := deployment.lookup("replicaCount"); replicas.isSet() && replicas.integer() == 0 {
		r.add(replicas, TypeInvalid, "no gardenlet runs, so nothing reconciles the seed and its Shoots")
	}
	image := deployment.lookup("image")
	for _, tag := range []fieldValue{image.lookup("tag"), image.lookup("ref"), deployment.lookup("helm", "ociRepository", "tag"), deployment.lookup("helm", "ociRepository", "ref")} {
		r.checkMutableTag(tag)
	}
	return r.findings
}

// checkMutableTag reports a tag that moves to another program without a change in Git.
func (r *findingCollector) checkMutableTag(field fieldValue) {
	name := field.text()[strings.LastIndexByte(field.text(), ':')+1:]
	if slices.Contains([]string{"latest", "main", "master"}, name) && !strings.Contains(field.text(), "@") {
		r.add(field, TypeInvalid, "%q can change without a change in Git; write the version or a digest", name)
	}
}

// checkRequestsWithinLimits checks that no request is above its limit, because the API server
// refuses such pods.
func (r *findingCollector) checkRequestsWithinLimits(resources fieldValue) {
	requests, limits := resources.lookup("requests"), resources.lookup("limits")
	for _, name := range requests.keys() {
		request, asked := requests.entry(name).quantity()
		limit, bounded := limits.entry(name).quantity()
		if asked && bounded && request.Cmp(limit) > 0 {
			r.add(requests.entry(name), TypeInvalid, "%s is more than the limit of %s", request.String(), limit.String())
		}
	}
}

func (r *findingCollector) checkGardenletImage(image fieldValue) {
	ref, repository, tag := image.lookup("ref"), image.lookup("repository"), image.lookup("tag")
	for _, part := range []fieldValue{ref, repository, tag} {
		if part.isSet() && part.text() == "" {
			r.add(part, TypeInvalid, "must not be empty; leave it out")
		}
	}
	if ref.isSet() && (repository.isSet() || tag.isSet()) {
		r.add(image, TypeForbidden, "must set ref, or repository and tag, not both")
	}
	if policy := image.lookup("pullPolicy"); policy.isSet() {
		r.requireOneOf(policy, "Always", "IfNotPresent", "Never")
	}
}

// textMap returns the texts of a map, without other values.
func (t fieldValue) textMap() map[string]string {
	values := map[string]string{}
	for _, key := range t.keys() {
		if text, ok := t.entry(key).value.(string); ok {
			values[key] = text
		}
	}
	return values
}

func checkManagedSeedSetSelector(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	at := spec.lookup("selector")
	if in.old != nil && !reflect.DeepEqual(removeEmptyValues(at.value), removeEmptyValues(fieldValue{value: in.old}.lookup("spec", "selector").value)) {
		r.add(at, TypeInvalid, "must not change: existing seeds are found by it")
	}
	if len(at.lookup("matchLabels").keys()) == 0 && len(at.lookup("matchExpressions").items()) == 0 {
		r.add(at, TypeInvalid, "must not be empty: it would select all seeds")
		return r.findings
	}
	before := len(r.findings)
	r.checkLabelSelector(at)
	fields, _ := at.value.(map[string]any)
	var selector metav1.LabelSelector
	if len(r.findings) > before || runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector) != nil {
		return r.findings
	}
	matcher, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return r.findings
	}
	templates := []fieldValue{spec.lookup("template"), spec.lookup("shootTemplate")}
	if config := spec.lookup("template", "spec", "gardenlet", "config", "seedConfig"); config.isSet() {
		templates = append(templates, config)
	}
	for _, template := range templates {
		found := template.lookup("metadata", "labels")
		if !matcher.Matches(labels.Set(found.textMap())) {
			r.add(found, TypeInvalid, "must match spec.selector, %s", matcher)
		}
	}
	return r.findings
}
