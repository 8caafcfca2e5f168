package schemas

import (
	"slices"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// autoscaled lists the resources that autoscalers support.
var autoscaled = [...]string{"cpu", "memory"}

// autoscalerMaximum checks the upper limits of the VerticalPodAutoscaler.
func (r *report) autoscalerMaximum(limits tree) {
	for _, name := range limits.keys() {
		r.autoscaledResource(limits.at(name), name)
		r.amount(limits.at(name), name)
	}
}

func (r *report) autoscaledResource(limit tree, name string) {
	if !slices.Contains(autoscaled[:], name) {
		r.add(limit, TypeNotSupported, "%q cannot be scaled, but only \"cpu\" and \"memory\"%s", name, meant(name, autoscaled[:]))
	}
}

// countedResources lists the resources that are measured in whole numbers.
var countedResources = [...]string{
	"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
	"services.nodeports", "services.loadbalancers",
}

// amount checks that a quantity is not negative, and whole if the resource is counted.
func (r *report) amount(field tree, name string) {
	r.quantities(field)
	extended := strings.Contains(name, "/") && !strings.Contains(name, "kubernetes.io/") && !strings.HasPrefix(name, "requests.")
	quantity, ok := field.quantity()
	if ok && (extended || slices.Contains(countedResources[:], name)) && quantity.MilliValue()%1000 != 0 {
		r.add(field, TypeInvalid, "%v is not a whole number, but %s is counted", field.value, name)
	}
}

func gardenAutoscaling(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	r.autoscalerMaximum(spec.at("runtimeCluster", "settings", "verticalPodAutoscaler", "maxAllowed"))
	etcd := spec.at("virtualCluster", "etcd")
	r.minAllowed(etcd.at("main", "autoscaling"), map[string]string{"memory": "300M"})
	r.minAllowed(etcd.at("events", "autoscaling"), map[string]string{"memory": "60M"})
	return r.findings
}

// gardenDurations checks the durations of components. A TTL of 0s turns caching off.
func gardenDurations(in ruleInput) []finding {
	r, dashboard := &report{}, gardenComponent(in.object, "gardenerDashboard")
	kubernetes := tree{value: in.object}.at("spec", "virtualCluster", "kubernetes")
	r.durations(0, kubernetes.at("kubeAPIServer", "authentication", "webhook", "cacheTTL"))
	r.durations(time.Second, kubernetes.at("kubeControllerManager", "certificateSigningDuration"), dashboard.at("gitHub", "pollInterval"), dashboard.at("oidcConfig", "sessionLifetime"))
	return r.findings
}

func gardenAnnotations(in ruleInput) []finding {
	r, annotations := &report{}, tree{value: in.object}.at("spec", "runtimeCluster", "settings", "loadBalancerServices", "annotations")
	r.apiErrors(apivalidation.ValidateAnnotations(annotations.textMap(), field.NewPath(annotations.path)))
	return r.findings
}

func gardenKubeconfigExpiration(in ruleInput) []finding {
	r := &report{}
	field := gardenComponent(in.object, "gardenerAPIServer").at("shootAdminKubeconfigMaxExpiration")
	if duration, ok := field.duration(); ok && (duration < time.Hour || duration > (1<<32)*time.Second) {
		r.add(field, TypeInvalid, "%s is not between 1h and 2^32 seconds (about 136 years)", field.text())
	}
	return r.findings
}

func gardenComponent(garden map[string]any, name string) tree {
	return tree{value: garden}.at("spec", "virtualCluster", "gardener", name)
}
