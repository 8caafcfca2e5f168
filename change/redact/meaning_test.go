// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/change"
)

// TestCompareMeaning: an equivalent notation is not a difference to a reviewer, but Compare reports
// it.
func TestCompareMeaning(t *testing.T) {
	role := func(rules string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: " + rules + "}"
	}
	deployment := func(spec string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: " + spec + "}}}"
	}
	for name, c := range map[string]struct {
		old, new string
		want     []string
	}{
		"rules in another order": {role("[{verbs: [get], resources: [a]}, {verbs: [list], resources: [b]}]"), role("[{verbs: [list], resources: [b]}, {verbs: [get], resources: [a]}]"), nil},
		"verbs in another order": {role("[{verbs: [get, list], resources: [a]}]"), role("[{verbs: [list, get], resources: [a]}]"), nil},
		"a rule changed":         {role("[{verbs: [get]}, {verbs: [list]}]"), role("[{verbs: [list]}, {verbs: [get, watch]}]"), []string{"rules[0].verbs"}},
		"a rule twice":           {role("[{verbs: [get]}, {verbs: [get]}]"), role("[{verbs: [get]}]"), []string{"rules"}},
		"order and one more":     {role("[{verbs: [get]}, {verbs: [list]}]"), role("[{verbs: [list]}, {verbs: [watch]}, {verbs: [get]}]"), []string{"rules"}},
		"subjects": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, subjects: [{kind: User, name: a}, {kind: Group, name: a}]}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, subjects: [{kind: Group, name: a}, {kind: User, name: a, namespace: other}]}",
			[]string{"subjects[kind=User,name=a]", "subjects[kind=User,namespace=other,name=a]"}},
		"pods restart with the order": {deployment("{containers: [{name: a}, {name: b}]}"), deployment("{containers: [{name: b}, {name: a}]}"), []string{"spec.template.spec.containers (order)"}},
		"arguments keep theirs":       {deployment("{containers: [{name: a, args: [x, y]}]}"), deployment("{containers: [{name: a, args: [y, x]}]}"), []string{"spec.template.spec.containers[name=a].args"}},
		"ports of a service": {"{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{name: a, port: 1}, {name: b, port: 2, targetPort: 2}]}}",
			"{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: ClusterIP, ports: [{name: b, port: 2, protocol: TCP}, {name: a, port: 1, targetPort: 1}]}}", nil},
		"pools of a shoot":        {shootList("[{name: a}, {name: b}]"), shootList("[{name: b}, {name: a}]"), nil},
		"lists of others":         {widgetManifest("{rules: [{name: a}, {name: b}]}"), widgetManifest("{rules: [{name: b}, {name: a}]}"), []string{"spec.rules (order)"}},
		"pull policy of a tag":    {deployment("{containers: [{name: a, image: 'x:1'}]}"), deployment("{containers: [{name: a, image: 'x:1', imagePullPolicy: IfNotPresent}]}"), nil},
		"pull policy of a digest": {deployment("{containers: [{name: a, image: 'r:5000/x@sha256:1'}]}"), deployment("{containers: [{name: a, image: 'r:5000/x@sha256:1', imagePullPolicy: IfNotPresent}]}"), nil},
		"pull policy without tag": {deployment("{containers: [{name: a, image: 'r:5000/x'}]}"), deployment("{containers: [{name: a, image: 'r:5000/x', imagePullPolicy: Always}]}"), nil},
		"another pull policy":     {deployment("{containers: [{name: a, image: 'x:1'}]}"), deployment("{containers: [{name: a, image: 'x:1', imagePullPolicy: Always}]}"), []string{"spec.template.spec.containers[name=a].imagePullPolicy"}},
		"probe":                   {deployment("{containers: [{name: a, livenessProbe: {httpGet: {port: 1}}}]}"), deployment("{containers: [{name: a, livenessProbe: {periodSeconds: 10, httpGet: {port: 1, scheme: HTTP}}}]}"), nil},
		"another period":          {deployment("{containers: [{name: a, livenessProbe: {httpGet: {port: 1}}}]}"), deployment("{containers: [{name: a, livenessProbe: {periodSeconds: 5, httpGet: {port: 1}}}]}"), []string{"spec.template.spec.containers[name=a].livenessProbe.periodSeconds"}},
		"a default changed":       {deployment("{restartPolicy: Always}"), deployment("{restartPolicy: Never}"), []string{"spec.template.spec.restartPolicy"}},
		"replicas have none":      {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {}}", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 1}}", []string{"spec.replicas"}},
		"not in other APIs":       {widgetManifest("{restartPolicy: Always}"), widgetManifest("{}"), []string{"spec.restartPolicy"}},
		"definition": {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w}, spec: {names: {kind: Widget}, versions: [{name: v1}, {name: v2}]}}",
			"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w}, spec: {conversion: {strategy: None}, names: {kind: Widget, listKind: WidgetList, singular: widget}, versions: [{name: v1}, {name: v2}]}}", nil},
		"another conversion": {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w}, spec: {names: {kind: Widget}}}",
			"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w}, spec: {names: {kind: Widget}, conversion: {strategy: Webhook}}}", []string{"spec.conversion"}},
		"probe of the root": {deployment("{containers: [{name: a, livenessProbe: {httpGet: {port: 1}}}]}"), deployment("{containers: [{name: a, livenessProbe: {httpGet: {port: 1, path: /}}}]}"), nil},
		"groups of subjects": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, subjects: [{kind: User, name: a}, {kind: Group, name: a}, {kind: ServiceAccount, name: a, namespace: b}]}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, subjects: [{kind: User, name: a, apiGroup: rbac.authorization.k8s.io}, {kind: Group, name: a, apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, name: a, namespace: b, apiGroup: ''}]}", nil},
		"replicas of a scaler": {"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {maxReplicas: 2}}",
			"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {maxReplicas: 2, minReplicas: 1}}", nil},
		"policy types": {"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n}, spec: {podSelector: {}}}",
			"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n}, spec: {podSelector: {}, policyTypes: [Ingress]}}", nil},
		"more policy types": {"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n}, spec: {podSelector: {}}}",
			"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n}, spec: {podSelector: {}, policyTypes: [Ingress, Egress]}}", []string{"spec.policyTypes"}},
		"machine types": {"{apiVersion: core.gardener.cloud/v1beta1, kind: CloudProfile, metadata: {name: p}, spec: {machineTypes: [{name: m, cpu: '2', gpu: '0', memory: 8Gi, storage: {size: 1Ti}}]}}",
			"{apiVersion: core.gardener.cloud/v1beta1, kind: CloudProfile, metadata: {name: p}, spec: {machineTypes: [{name: m, cpu: 2000m, gpu: 0, memory: 8192Mi, storage: {size: 1024Gi}}]}}", nil},
		"larger machines": {"{apiVersion: core.gardener.cloud/v1beta1, kind: CloudProfile, metadata: {name: p}, spec: {machineTypes: [{name: m, cpu: '2', memory: 8Gi}]}}",
			"{apiVersion: core.gardener.cloud/v1beta1, kind: CloudProfile, metadata: {name: p}, spec: {machineTypes: [{name: m, cpu: '2', memory: 8G}]}}", []string{"spec.machineTypes[name=m].memory"}},
		"durations": {"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s}, spec: {kubernetes: {kubeAPIServer: {eventTTL: 1h}, kubeControllerManager: {podEvictionTimeout: 2m}}}}",
			"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s}, spec: {kubernetes: {kubeAPIServer: {eventTTL: 60m}, kubeControllerManager: {podEvictionTimeout: 120s}}}}", nil},
		"another duration": {"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s}, spec: {kubernetes: {kubeAPIServer: {eventTTL: 1h}}}}",
			"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s}, spec: {kubernetes: {kubeAPIServer: {eventTTL: 61m}}}}", []string{"spec.kubernetes.kubeAPIServer.eventTTL"}},
		"order of what changes objects": {"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: m}, webhooks: [{name: a}, {name: b}]}",
			"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: m}, webhooks: [{name: b}, {name: a}]}", []string{"webhooks (order)"}},
	} {
		t.Run(name, func(t *testing.T) {
			old, new := object(t, c.old), object(t, c.new)
			paths := func(fields []change.Field) []string {
				var out []string
				for _, f := range fields {
					out = append(out, f.Path)
				}
				return out
			}
			assert.Equal(t, c.want, paths(Masking{}.CompareMeaning(old.Object, new.Object)))
			assert.Len(t, Masking{}.CompareMeaning(new.Object, old.Object), len(c.want), "as many the other way round")
			assert.NotEmpty(t, Compare(old.Object, new.Object), "to a cluster it is a difference")
		})
	}
}

func shootList(workers string) string {
	return "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s}, spec: {provider: {workers: " + workers + "}}}"
}
