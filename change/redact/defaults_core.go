// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
)

// serviceDefaults are the defaults of the core kinds other than pods.
var serviceDefaults = map[reflect.Type]defaultFunc{
	typeFor[v1.ServiceSpec](): serviceSpecDefaults,
	typeFor[v1.ServicePort](): func(_ valueLocation, o jsonObject) jsonObject {
		return jsonObject{"protocol": "TCP", "targetPort": o["port"]}
	},
	typeFor[v1.SessionAffinityConfig](): constantDefaults(jsonObject{"clientIP": jsonObject{}}),
	typeFor[v1.ClientIPConfig]():        constantDefaults(jsonObject{"timeoutSeconds": int64(10800)}),
	typeFor[v1.EndpointPort]():          constantDefaults(jsonObject{"protocol": "TCP"}),

	typeFor[v1.Secret]():    constantDefaults(jsonObject{"type": "Opaque", "immutable": false}),
	typeFor[v1.ConfigMap](): constantDefaults(jsonObject{"immutable": false}),
	// This is not a default of the API server; readers of the field assume it.
	typeFor[v1.ServiceAccount](): constantDefaults(jsonObject{"automountServiceAccountToken": true}),
	typeFor[v1.Namespace]():      constantDefaults(jsonObject{"spec": jsonObject{"finalizers": jsonList{"kubernetes"}}}),
	typeFor[v1.NamespaceSpec]():  constantDefaults(jsonObject{"finalizers": jsonList{"kubernetes"}}),
}

// serviceSpecDefaults returns the defaults of a Service. The IP family depends on the cluster.
func serviceSpecDefaults(_ valueLocation, o jsonObject) jsonObject {
	kind, _ := o["type"].(string)
	out := jsonObject{"type": "ClusterIP", "sessionAffinity": "None"}
	if ips, _ := o["externalIPs"].([]any); kind == "NodePort" || kind == "LoadBalancer" || len(ips) > 0 {
		out["externalTrafficPolicy"] = "Cluster"
	}
	if kind == "LoadBalancer" {
		out["allocateLoadBalancerNodePorts"] = true
	}
	if o["sessionAffinity"] == "ClientIP" {
		out["sessionAffinityConfig"] = jsonObject{}
	}
	if kind == "ExternalName" {
		return out
	}
	out["internalTrafficPolicy"] = "Cluster"
	ip, _ := o["clusterIP"].(string)
	selector, _ := o["selector"].(map[string]any)
	if families, _ := o["ipFamilies"].([]any); len(families) < 2 && (ip != "None" || len(selector) > 0) {
		out["ipFamilyPolicy"] = "SingleStack"
	}
	if ips, _ := o["clusterIPs"].([]any); ip == "" && len(ips) > 0 {
		out["clusterIP"] = ips[0]
	}
	if ip != "" {
		out["clusterIPs"] = jsonList{ip}
	}
	return out
}

// completionsByType are types whose existing maps the API server completes; they are compared in
// that form.
var completionsByType = map[reflect.Type]func(l valueLocation, object map[string]any) map[string]any{
	typeFor[v1.LimitRangeItem]():       completeLimitRangeItem,
	typeFor[v1.ResourceRequirements](): completeRequests,
	typeFor[v1.Namespace](): func(_ valueLocation, o jsonObject) jsonObject {
		meta, _ := o["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		return withFields(o, jsonObject{"metadata": withFields(meta, jsonObject{"labels": withFields(labels, jsonObject{v1.LabelMetadataName: meta["name"]})})})
	},
}

// completeDefaults returns an object as the API server completes it.
func (l valueLocation) completeDefaults(object map[string]any) map[string]any {
	if !l.ignoresNotation || l.goType == nil || object == nil {
		return object
	}
	if f := completionsByType[indirect(l.goType)]; f != nil {
		return f(l, object)
	}
	return object
}

// completeLimitRangeItem completes an item of a LimitRange: each missing number follows from the
// declared ones.
func completeLimitRangeItem(_ valueLocation, o jsonObject) jsonObject {
	if o["type"] != "Container" {
		return o
	}
	out := withFields(o, jsonObject{"default": mergeMapFields(o, "default", "max")})
	out["defaultRequest"] = mergeMapFields(out, "defaultRequest", "default", "min")
	return out
}

// completeRequests copies missing requests of a Pod from its limits. Pod templates are not changed.
func completeRequests(l valueLocation, o jsonObject) jsonObject {
	if l.kind != "Pod" || o["limits"] == nil {
		return o
	}
	return withFields(o, jsonObject{"requests": mergeMapFields(o, "requests", "limits")})
}

// mergeMapFields returns a map of an object with the additional keys of other maps.
func mergeMapFields(o jsonObject, fields ...string) jsonObject {
	out := jsonObject{}
	for _, field := range fields {
		m, _ := o[field].(map[string]any)
		for k, v := range m {
			if out[k] == nil {
				out[k] = v
			}
		}
	}
	return out
}
