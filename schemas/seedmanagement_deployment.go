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

func (r *report) gardenletDeployment(deployment tree) {
	r.notNegative(deployment.at("replicaCount"), deployment.at("revisionHistoryLimit"))
	if account := deployment.at("serviceAccountName"); account.set() && len(apivalidation.ValidateServiceAccountName(account.text(), false)) > 0 {
		r.add(account, TypeInvalid, "%q %s", account.text(), nameWords)
	}
	r.gardenletImage(deployment.at("image"))
	r.withinLimits(deployment.at("resources"))
	podLabels, podAnnotations := deployment.at("podLabels"), deployment.at("podAnnotations")
	r.apiErrors(metav1validation.ValidateLabels(podLabels.textMap(), field.NewPath(podLabels.path)))
	r.apiErrors(apivalidation.ValidateAnnotations(podAnnotations.textMap(), field.NewPath(podAnnotations.path)))
}

// gardenletDeploymentHabits reports a deployment without a gardenlet, or with a gardenlet that can
// change without a change in Git.
func gardenletDeploymentHabits(in ruleInput, at []string) []finding {
	r, deployment := &report{}, tree{value: in.object}.at(at...).at("deployment")
	if replicas := deployment.at("replicaCount"); replicas.set() && replicas.count() == 0 {
		r.add(replicas, TypeInvalid, "no gardenlet runs then, so that nobody looks after the seed and its Shoots")
	}
	image := deployment.at("image")
	for _, tag := range []tree{image.at("tag"), image.at("ref"), deployment.at("helm", "ociRepository", "tag"), deployment.at("helm", "ociRepository", "ref")} {
		r.movingTag(tag)
	}
	return r.findings
}

// movingTag reports a tag that moves to another program without a change in Git.
func (r *report) movingTag(field tree) {
	name := field.text()[strings.LastIndexByte(field.text(), ':')+1:]
	if slices.Contains([]string{"latest", "main", "master"}, name) && !strings.Contains(field.text(), "@") {
		r.add(field, TypeInvalid, "%q is another one tomorrow, without a change in Git; write the version or a digest", name)
	}
}

// withinLimits checks that no request is above its limit, because the API server refuses such pods.
func (r *report) withinLimits(resources tree) {
	requests, limits := resources.at("requests"), resources.at("limits")
	for _, name := range requests.keys() {
		request, asked := requests.key(name).quantity()
		limit, bounded := limits.key(name).quantity()
		if asked && bounded && request.Cmp(limit) > 0 {
			r.add(requests.key(name), TypeInvalid, "%s is more than the limit of %s", request.String(), limit.String())
		}
	}
}

func (r *report) gardenletImage(image tree) {
	ref, repository, tag := image.at("ref"), image.at("repository"), image.at("tag")
	for _, part := range []tree{ref, repository, tag} {
		if part.set() && part.text() == "" {
			r.add(part, TypeInvalid, "must not be empty; leave it out")
		}
	}
	if ref.set() && (repository.set() || tag.set()) {
		r.add(image, TypeForbidden, "must set ref, or repository and tag, not both")
	}
	if policy := image.at("pullPolicy"); policy.set() {
		r.oneOf(policy, "Always", "IfNotPresent", "Never")
	}
}

// textMap returns the texts of a map, without other values.
func (t tree) textMap() map[string]string {
	values := map[string]string{}
	for _, key := range t.keys() {
		if text, ok := t.key(key).value.(string); ok {
			values[key] = text
		}
	}
	return values
}

func managedSeedSetSelector(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	at := spec.at("selector")
	if in.old != nil && !reflect.DeepEqual(compact(at.value), compact(tree{value: in.old}.at("spec", "selector").value)) {
		r.add(at, TypeInvalid, "must stay as it was: the seeds that exist are found by it")
	}
	if len(at.at("matchLabels").keys()) == 0 && len(at.at("matchExpressions").items()) == 0 {
		r.add(at, TypeInvalid, "must not be empty: it would select all seeds")
		return r.findings
	}
	before := len(r.findings)
	r.labelSelector(at)
	fields, _ := at.value.(map[string]any)
	var selector metav1.LabelSelector
	if len(r.findings) > before || runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector) != nil {
		return r.findings
	}
	matcher, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return r.findings
	}
	templates := []tree{spec.at("template"), spec.at("shootTemplate")}
	if config := spec.at("template", "spec", "gardenlet", "config", "seedConfig"); config.set() {
		templates = append(templates, config)
	}
	for _, template := range templates {
		found := template.at("metadata", "labels")
		if !matcher.Matches(labels.Set(found.textMap())) {
			r.add(found, TypeInvalid, "must match spec.selector, %s", matcher)
		}
	}
	return r.findings
}
