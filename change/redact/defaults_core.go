package redact

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
)

// serviceFills are the defaults of the core kinds other than pods.
var serviceFills = map[reflect.Type]fill{
	of[v1.ServiceSpec](): service,
	of[v1.ServicePort](): func(_ location, o values) values {
		return values{"protocol": "TCP", "targetPort": o["port"]}
	},
	of[v1.SessionAffinityConfig](): constant(values{"clientIP": values{}}),
	of[v1.ClientIPConfig]():        constant(values{"timeoutSeconds": int64(10800)}),
	of[v1.EndpointPort]():          constant(values{"protocol": "TCP"}),

	of[v1.Secret]():    constant(values{"type": "Opaque", "immutable": false}),
	of[v1.ConfigMap](): constant(values{"immutable": false}),
	// This is not a default of the API server; readers of the field assume it.
	of[v1.ServiceAccount](): constant(values{"automountServiceAccountToken": true}),
	of[v1.Namespace]():      constant(values{"spec": values{"finalizers": list{"kubernetes"}}}),
	of[v1.NamespaceSpec]():  constant(values{"finalizers": list{"kubernetes"}}),
}

// service returns the defaults of a Service. The IP family depends on the cluster.
func service(_ location, o values) values {
	kind, _ := o["type"].(string)
	out := values{"type": "ClusterIP", "sessionAffinity": "None"}
	if ips, _ := o["externalIPs"].([]any); kind == "NodePort" || kind == "LoadBalancer" || len(ips) > 0 {
		out["externalTrafficPolicy"] = "Cluster"
	}
	if kind == "LoadBalancer" {
		out["allocateLoadBalancerNodePorts"] = true
	}
	if o["sessionAffinity"] == "ClientIP" {
		out["sessionAffinityConfig"] = values{}
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
		out["clusterIPs"] = list{ip}
	}
	return out
}

// completed are types whose existing maps the API server completes; they are compared in that form.
var completed = map[reflect.Type]func(l location, object map[string]any) map[string]any{
	of[v1.LimitRangeItem]():       limits,
	of[v1.ResourceRequirements](): requests,
	of[v1.Namespace](): func(_ location, o values) values {
		meta, _ := o["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		return with(o, values{"metadata": with(meta, values{"labels": with(labels, values{v1.LabelMetadataName: meta["name"]})})})
	},
}

// complete returns an object as the API server completes it.
func (l location) complete(object map[string]any) map[string]any {
	if !l.meaning || l.typ == nil || object == nil {
		return object
	}
	if f := completed[indirect(l.typ)]; f != nil {
		return f(l, object)
	}
	return object
}

// limits completes an item of a LimitRange: each missing number follows from the declared ones.
func limits(_ location, o values) values {
	if o["type"] != "Container" {
		return o
	}
	out := with(o, values{"default": merged(o, "default", "max")})
	out["defaultRequest"] = merged(out, "defaultRequest", "default", "min")
	return out
}

// requests copies missing requests of a Pod from its limits. Pod templates are not changed.
func requests(l location, o values) values {
	if l.kind != "Pod" || o["limits"] == nil {
		return o
	}
	return with(o, values{"requests": merged(o, "requests", "limits")})
}

// merged returns a map of an object with the additional keys of other maps.
func merged(o values, fields ...string) values {
	out := values{}
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
