// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// autoscalerResources lists the resources that autoscalers support.
var autoscalerResources = [...]string{"cpu", "memory"}

// checkAutoscalerMaximum checks the upper limits of the VerticalPodAutoscaler.
func (r *findingCollector) checkAutoscalerMaximum(limits fieldValue) {
	for _, name := range limits.keys() {
		r.checkAutoscalerResource(limits.lookup(name), name)
		r.checkResourceAmount(limits.lookup(name), name)
	}
}

func (r *findingCollector) checkAutoscalerResource(limit fieldValue, name string) {
	if !slices.Contains(autoscalerResources[:], name) {
		r.add(limit, TypeNotSupported, "%q cannot be scaled; use \"cpu\" or \"memory\"%s", name, suggestionHint(name, autoscalerResources[:]))
	}
}

// countedResources lists the resources that are measured in whole numbers.
var countedResources = [...]string{
	"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
	"services.nodeports", "services.loadbalancers",
}

// checkResourceAmount checks that a quantity is not negative, and whole if the resource is counted.
func (r *findingCollector) checkResourceAmount(field fieldValue, name string) {
	r.requireNonNegativeQuantities(field)
	extended := strings.Contains(name, "/") && !strings.Contains(name, "kubernetes.io/") && !strings.HasPrefix(name, "requests.")
	quantity, ok := field.quantity()
	if ok && (extended || slices.Contains(countedResources[:], name)) && quantity.MilliValue()%1000 != 0 {
		r.add(field, TypeInvalid, "%v is not a whole number, but %s is counted", field.value, name)
	}
}

func checkGardenAutoscaling(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	r.checkAutoscalerMaximum(spec.lookup("runtimeCluster", "settings", "verticalPodAutoscaler", "maxAllowed"))
	etcd := spec.lookup("virtualCluster", "etcd")
	r.checkMinAllowed(etcd.lookup("main", "autoscaling"), map[string]string{"memory": "300M"})
	r.checkMinAllowed(etcd.lookup("events", "autoscaling"), map[string]string{"memory": "60M"})
	return r.findings
}

// checkGardenDurations checks the durations of components. A TTL of 0s turns caching off.
func checkGardenDurations(in ruleInput) []finding {
	r, dashboard := &findingCollector{}, gardenComponent(in.object, "gardenerDashboard")
	kubernetes := fieldValue{value: in.object}.lookup("spec", "virtualCluster", "kubernetes")
	r.requireMinimumDurations(0, kubernetes.lookup("kubeAPIServer", "authentication", "webhook", "cacheTTL"))
	r.requireMinimumDurations(time.Second, kubernetes.lookup("kubeControllerManager", "certificateSigningDuration"), dashboard.lookup("gitHub", "pollInterval"), dashboard.lookup("oidcConfig", "sessionLifetime"))
	return r.findings
}

func checkGardenAnnotations(in ruleInput) []finding {
	r, annotations := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "runtimeCluster", "settings", "loadBalancerServices", "annotations")
	r.addFieldErrors(apivalidation.ValidateAnnotations(annotations.textMap(), field.NewPath(annotations.path)))
	return r.findings
}

func checkGardenKubeconfigExpiration(in ruleInput) []finding {
	r := &findingCollector{}
	field := gardenComponent(in.object, "gardenerAPIServer").lookup("shootAdminKubeconfigMaxExpiration")
	if duration, ok := field.duration(); ok && (duration < time.Hour || duration > (1<<32)*time.Second) {
		r.add(field, TypeInvalid, "%s is not between 1h and 2^32 seconds (about 136 years)", field.text())
	}
	return r.findings
}

func gardenComponent(garden map[string]any, name string) fieldValue {
	return fieldValue{value: garden}.lookup("spec", "virtualCluster", "gardener", name)
}
