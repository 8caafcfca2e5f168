package redact

import (
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// For a reviewer an absent field equals its default. Source: the functions SetDefaults_* of
// kubernetes, pkg/apis/*/v1/defaults.go, whose modules cannot be vendored. A test asks an API
// server. Zero values need no default (isZero).
//
// Defaults that only some versions of the API server set are included. Excluded are replicas, which
// others set if they are not declared, and defaults of Pods that pod templates do not have, except
// in Pods.

// fill returns the fields that the API server sets in an object of one type. Fields that the object
// already has are ignored.
type fill func(l location, object map[string]any) map[string]any

// constant returns the same fields for every object.
func constant(fields map[string]any) fill {
	return func(location, map[string]any) map[string]any { return fields }
}

// fills are the defaults by type, for workloads, pods and all other types.
var fills = joined(podFills, workloadFills, serviceFills, otherFills)

func joined(maps ...map[reflect.Type]fill) map[reflect.Type]fill {
	out := map[reflect.Type]fill{}
	for _, m := range maps {
		for t, f := range m {
			out[t] = f
		}
	}
	return out
}

// isStandard reports whether an object leaves a field to the API server, and v is its default.
func (c comparison) isStandard(at, inner location, object map[string]any, key string, v any) bool {
	if v == nil || object == nil || !inner.isEmpty(object[key]) {
		return false
	}
	if at.builtin && key == "creationTimestamp" {
		return true
	}
	if at.typ == nil {
		return false
	}
	if _, isMap := v.(map[string]any); isMap && inner.isStructure() && !c.differ(inner, values{}, v) {
		return true
	}
	f := fills[indirect(at.typ)]
	if f == nil {
		return false
	}
	standard, known := f(at, object)[key]
	return known && !c.differ(inner, standard, v)
}

// values and list are the types that JSON is decoded to.
type (
	values = map[string]any
	list   = []any
)

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// otherFills are the defaults of types that are not used in pods.
var otherFills = map[reflect.Type]fill{
	of[rbacv1.RoleRef](): constant(values{"apiGroup": rbacv1.GroupName}),
	of[rbacv1.Subject](): func(_ location, o values) values {
		if o["kind"] == rbacv1.UserKind || o["kind"] == rbacv1.GroupKind {
			return values{"apiGroup": rbacv1.GroupName}
		}
		return nil
	},

	of[autoscalingv1.HorizontalPodAutoscalerSpec](): constant(values{"minReplicas": int64(1)}),
	of[autoscalingv2.HorizontalPodAutoscalerSpec](): constant(values{"minReplicas": int64(1), "metrics": list{values{
		"type": "Resource", "resource": values{"name": "cpu", "target": values{"type": "Utilization", "averageUtilization": int64(80)}}}}}),
	of[autoscalingv2.HorizontalPodAutoscalerBehavior](): constant(values{"scaleUp": values(scaleUp), "scaleDown": values(scaleDown)}),
	of[autoscalingv2.HPAScalingRules](): func(l location, _ values) values {
		if l.last() == "scaleUp" {
			return scaleUp
		}
		return scaleDown
	},

	of[policyv1.PodDisruptionBudgetSpec](): constant(values{"unhealthyPodEvictionPolicy": "IfHealthyBudget"}),

	of[networkingv1.NetworkPolicySpec](): func(_ location, o values) values {
		types := list{"Ingress"}
		if egress, _ := o["egress"].([]any); len(egress) > 0 {
			types = append(types, "Egress")
		}
		return values{"policyTypes": types}
	},
	of[networkingv1.NetworkPolicyPort]():               constant(values{"protocol": "TCP"}),
	of[networkingv1.IngressClassParametersReference](): constant(values{"scope": "Cluster"}),

	of[admissionv1.ValidatingWebhook]():             constant(webhook),
	of[admissionv1.MutatingWebhook]():               constant(with(webhook, values{"reinvocationPolicy": "Never"})),
	of[admissionv1.Rule]():                          constant(values{"scope": "*"}),
	of[admissionv1.RuleWithOperations]():            constant(values{"scope": "*"}),
	of[admissionv1.NamedRuleWithOperations]():       constant(values{"scope": "*"}),
	of[admissionv1.ServiceReference]():              constant(values{"port": int64(443)}),
	of[admissionv1.MatchResources]():                constant(values{"matchPolicy": "Equivalent", "namespaceSelector": values{}, "objectSelector": values{}}),
	of[admissionv1.ValidatingAdmissionPolicySpec](): constant(values{"failurePolicy": "Fail"}),
	of[admissionv1.MutatingAdmissionPolicySpec]():   constant(values{"failurePolicy": "Fail"}),

	of[schedulingv1.PriorityClass](): constant(values{"preemptionPolicy": "PreemptLowerPriority"}),

	of[storagev1.StorageClass](): constant(values{"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", "allowVolumeExpansion": false}),
	of[storagev1.CSIDriverSpec](): constant(values{"attachRequired": true, "podInfoOnMount": false, "storageCapacity": false,
		"fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": list{"Persistent"}, "requiresRepublish": false, "seLinuxMount": false,
		"preventPodSchedulingIfMissing": false}),

	of[discoveryv1.EndpointPort](): constant(values{"name": "", "protocol": "TCP"}),

	of[flowcontrolv1.FlowSchemaSpec]():                    constant(values{"matchingPrecedence": int64(1000)}),
	of[flowcontrolv1.ExemptPriorityLevelConfiguration]():  constant(values{"nominalConcurrencyShares": int64(0), "lendablePercent": int64(0)}),
	of[flowcontrolv1.LimitedPriorityLevelConfiguration](): constant(values{"nominalConcurrencyShares": int64(30), "lendablePercent": int64(0)}),
	of[flowcontrolv1.QueuingConfiguration]():              constant(values{"handSize": int64(8), "queues": int64(64), "queueLengthLimit": int64(50)}),

	of[apiextensionsv1.CustomResourceDefinitionSpec](): constant(values{"conversion": values{"strategy": "None"}}),
	of[apiextensionsv1.CustomResourceDefinitionNames](): func(_ location, o values) values {
		kind, _ := o["kind"].(string)
		return values{"listKind": kind + "List", "singular": strings.ToLower(kind)}
	},
	of[apiextensionsv1.ServiceReference](): constant(values{"port": int64(443)}),
	// False is not a default of the API server but means the same.
	of[apiextensionsv1.JSONSchemaProps]():                            constant(values{"x-kubernetes-preserve-unknown-fields": false}),
	childType(childType(of[apiService](), "spec"), "service").Elem(): constant(values{"port": int64(443)}),
}

// webhook are the defaults of both kinds of webhooks.
var webhook = values{"failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": values{}, "objectSelector": values{},
	"timeoutSeconds": int64(10)}

// scaleUp and scaleDown are the rules of an autoscaler that declares only a part of its behaviour.
var (
	scaleUp = values{"stabilizationWindowSeconds": int64(0), "selectPolicy": "Max", "policies": list{
		values{"type": "Pods", "value": int64(4), "periodSeconds": int64(15)}, values{"type": "Percent", "value": int64(100), "periodSeconds": int64(15)}}}
	scaleDown = values{"selectPolicy": "Max", "policies": list{values{"type": "Percent", "value": int64(100), "periodSeconds": int64(15)}}}
)

func with(m, more values) values {
	out := values{}
	for k, v := range m {
		out[k] = v
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}
