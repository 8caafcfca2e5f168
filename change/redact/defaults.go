// SPDX-License-Identifier: Apache-2.0

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

// defaultFunc returns the fields that the API server sets in an object of one type. Fields that the
// object already has are ignored.
type defaultFunc func(l valueLocation, object map[string]any) map[string]any

// constantDefaults returns the same fields for every object.
func constantDefaults(fields map[string]any) defaultFunc {
	return func(valueLocation, map[string]any) map[string]any { return fields }
}

// defaultsByType are the defaults by type, for workloads, pods and all other types.
var defaultsByType = mergeDefaults(podDefaults, workloadDefaults, serviceDefaults, otherDefaults)

func mergeDefaults(maps ...map[reflect.Type]defaultFunc) map[reflect.Type]defaultFunc {
	out := map[reflect.Type]defaultFunc{}
	for _, m := range maps {
		for t, f := range m {
			out[t] = f
		}
	}
	return out
}

// isDefault reports whether an object leaves a field to the API server, and v is its default.
func (c comparison) isDefault(at, inner valueLocation, object map[string]any, key string, v any) bool {
	if v == nil || object == nil || !inner.isEmpty(object[key]) {
		return false
	}
	if at.isInBuiltinAPI && key == "creationTimestamp" {
		return true
	}
	if at.goType == nil {
		return false
	}
	if _, isMap := v.(map[string]any); isMap && inner.isStructure() && !c.hasDifference(inner, jsonObject{}, v) {
		return true
	}
	f := defaultsByType[indirect(at.goType)]
	if f == nil {
		return false
	}
	standard, known := f(at, object)[key]
	return known && !c.hasDifference(inner, standard, v)
}

// values and list are the types that JSON is decoded to.
type (
	jsonObject = map[string]any
	jsonList   = []any
)

func typeFor[T any]() reflect.Type { return reflect.TypeFor[T]() }

// otherDefaults are the defaults of types that are not used in pods.
var otherDefaults = map[reflect.Type]defaultFunc{
	typeFor[rbacv1.RoleRef](): constantDefaults(jsonObject{"apiGroup": rbacv1.GroupName}),
	typeFor[rbacv1.Subject](): func(_ valueLocation, o jsonObject) jsonObject {
		if o["kind"] == rbacv1.UserKind || o["kind"] == rbacv1.GroupKind {
			return jsonObject{"apiGroup": rbacv1.GroupName}
		}
		return nil
	},

	typeFor[autoscalingv1.HorizontalPodAutoscalerSpec](): constantDefaults(jsonObject{"minReplicas": int64(1)}),
	typeFor[autoscalingv2.HorizontalPodAutoscalerSpec](): constantDefaults(jsonObject{"minReplicas": int64(1), "metrics": jsonList{jsonObject{
		"type": "Resource", "resource": jsonObject{"name": "cpu", "target": jsonObject{"type": "Utilization", "averageUtilization": int64(80)}}}}}),
	typeFor[autoscalingv2.HorizontalPodAutoscalerBehavior](): constantDefaults(jsonObject{"scaleUp": jsonObject(scaleUpDefaults), "scaleDown": jsonObject(scaleDownDefaults)}),
	typeFor[autoscalingv2.HPAScalingRules](): func(l valueLocation, _ jsonObject) jsonObject {
		if l.lastKey() == "scaleUp" {
			return scaleUpDefaults
		}
		return scaleDownDefaults
	},

	typeFor[policyv1.PodDisruptionBudgetSpec](): constantDefaults(jsonObject{"unhealthyPodEvictionPolicy": "IfHealthyBudget"}),

	typeFor[networkingv1.NetworkPolicySpec](): func(_ valueLocation, o jsonObject) jsonObject {
		types := jsonList{"Ingress"}
		if egress, _ := o["egress"].([]any); len(egress) > 0 {
			types = append(types, "Egress")
		}
		return jsonObject{"policyTypes": types}
	},
	typeFor[networkingv1.NetworkPolicyPort]():               constantDefaults(jsonObject{"protocol": "TCP"}),
	typeFor[networkingv1.IngressClassParametersReference](): constantDefaults(jsonObject{"scope": "Cluster"}),

	typeFor[admissionv1.ValidatingWebhook]():             constantDefaults(webhookDefaults),
	typeFor[admissionv1.MutatingWebhook]():               constantDefaults(withFields(webhookDefaults, jsonObject{"reinvocationPolicy": "Never"})),
	typeFor[admissionv1.Rule]():                          constantDefaults(jsonObject{"scope": "*"}),
	typeFor[admissionv1.RuleWithOperations]():            constantDefaults(jsonObject{"scope": "*"}),
	typeFor[admissionv1.NamedRuleWithOperations]():       constantDefaults(jsonObject{"scope": "*"}),
	typeFor[admissionv1.ServiceReference]():              constantDefaults(jsonObject{"port": int64(443)}),
	typeFor[admissionv1.MatchResources]():                constantDefaults(jsonObject{"matchPolicy": "Equivalent", "namespaceSelector": jsonObject{}, "objectSelector": jsonObject{}}),
	typeFor[admissionv1.ValidatingAdmissionPolicySpec](): constantDefaults(jsonObject{"failurePolicy": "Fail"}),
	typeFor[admissionv1.MutatingAdmissionPolicySpec]():   constantDefaults(jsonObject{"failurePolicy": "Fail"}),

	typeFor[schedulingv1.PriorityClass](): constantDefaults(jsonObject{"preemptionPolicy": "PreemptLowerPriority"}),

	typeFor[storagev1.StorageClass](): constantDefaults(jsonObject{"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", "allowVolumeExpansion": false}),
	typeFor[storagev1.CSIDriverSpec](): constantDefaults(jsonObject{"attachRequired": true, "podInfoOnMount": false, "storageCapacity": false,
		"fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": jsonList{"Persistent"}, "requiresRepublish": false, "seLinuxMount": false,
		"preventPodSchedulingIfMissing": false}),

	typeFor[discoveryv1.EndpointPort](): constantDefaults(jsonObject{"name": "", "protocol": "TCP"}),

	typeFor[flowcontrolv1.FlowSchemaSpec]():                    constantDefaults(jsonObject{"matchingPrecedence": int64(1000)}),
	typeFor[flowcontrolv1.ExemptPriorityLevelConfiguration]():  constantDefaults(jsonObject{"nominalConcurrencyShares": int64(0), "lendablePercent": int64(0)}),
	typeFor[flowcontrolv1.LimitedPriorityLevelConfiguration](): constantDefaults(jsonObject{"nominalConcurrencyShares": int64(30), "lendablePercent": int64(0)}),
	typeFor[flowcontrolv1.QueuingConfiguration]():              constantDefaults(jsonObject{"handSize": int64(8), "queues": int64(64), "queueLengthLimit": int64(50)}),

	typeFor[apiextensionsv1.CustomResourceDefinitionSpec](): constantDefaults(jsonObject{"conversion": jsonObject{"strategy": "None"}}),
	typeFor[apiextensionsv1.CustomResourceDefinitionNames](): func(_ valueLocation, o jsonObject) jsonObject {
		kind, _ := o["kind"].(string)
		return jsonObject{"listKind": kind + "List", "singular": strings.ToLower(kind)}
	},
	typeFor[apiextensionsv1.ServiceReference](): constantDefaults(jsonObject{"port": int64(443)}),
	// False is not a default of the API server but means the same.
	typeFor[apiextensionsv1.JSONSchemaProps]():                            constantDefaults(jsonObject{"x-kubernetes-preserve-unknown-fields": false}),
	childType(childType(typeFor[apiService](), "spec"), "service").Elem(): constantDefaults(jsonObject{"port": int64(443)}),
}

// webhookDefaults are the defaults of both kinds of webhooks.
var webhookDefaults = jsonObject{"failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": jsonObject{}, "objectSelector": jsonObject{},
	"timeoutSeconds": int64(10)}

// scaleUpDefaults and scaleDownDefaults are the rules of an autoscaler that declares only a part of
// its behaviour.
var (
	scaleUpDefaults = jsonObject{"stabilizationWindowSeconds": int64(0), "selectPolicy": "Max", "policies": jsonList{
		jsonObject{"type": "Pods", "value": int64(4), "periodSeconds": int64(15)}, jsonObject{"type": "Percent", "value": int64(100), "periodSeconds": int64(15)}}}
	scaleDownDefaults = jsonObject{"selectPolicy": "Max", "policies": jsonList{jsonObject{"type": "Percent", "value": int64(100), "periodSeconds": int64(15)}}}
)

func withFields(m, more jsonObject) jsonObject {
	out := jsonObject{}
	for k, v := range m {
		out[k] = v
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}
