// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNoEffect: parts of objects that API servers accept but that do nothing are found.
func TestNoEffect(t *testing.T) {
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1, "
	role := func(kind, rules string) string {
		return "{" + rbac + "kind: " + kind + ", metadata: {name: a, namespace: b}, " + rules + "}"
	}
	clusterRole := func(rules string) string {
		return "{" + rbac + "kind: ClusterRole, metadata: {name: a}, " + rules + "}"
	}
	policy := func(spec string) string {
		return "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a, namespace: b}, spec: {podSelector: {}, " + spec + "}}"
	}
	workload := func(labels, container string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b, labels: {" + labels + "}}, spec: {selector: {matchLabels: {x: z}}, template: {metadata: {labels: {x: z, " + labels + "}}, spec: {containers: [{name: c, image: i" + container + "}]}}}}"
	}
	set := func(mount, size string) string {
		return "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: b}, spec: {serviceName: s, selector: {matchLabels: {x: z}}, template: {metadata: {labels: {x: z}}, spec: {containers: [{name: c, image: i, volumeMounts: [{name: " + mount + ", mountPath: /m}]}], volumes: [{name: other, emptyDir: {}}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: " + size + "}}}}]}}"
	}
	job := func(schedule string) string {
		return "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: b}, spec: {schedule: '" + schedule + "', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}"
	}
	for name, tt := range map[string]struct{ object, want string }{
		"rules of an aggregated role":  {clusterRole("aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"), "rules: is replaced by the rules of the roles that aggregationRule selects"},
		"create of a name":             {clusterRole("rules: [{apiGroups: [''], resources: [pods], resourceNames: [x], verbs: [create]}]"), "rules[0].resourceNames: grants nothing: a request to create names no object"},
		"create of a name, and others": {clusterRole("rules: [{apiGroups: [''], resources: [pods], resourceNames: [x], verbs: [create, get]}]"), ""},
		"a subresource":                {clusterRole("rules: [{apiGroups: [''], resources: [pods/exce], verbs: [create]}]"), `did you mean "pods/exec"?`},
		"subresources":                 {clusterRole("rules: [{apiGroups: [''], resources: [pods/exec, serviceaccounts/token, nodes/proxy], verbs: [create]}]"), ""},
		"nodes of a Role":              {role("Role", "rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]"), "rules[0].resources[0]: a Role cannot grant access to nodes"},
		"nodes of another API":         {role("Role", "rules: [{apiGroups: [example.org], resources: [nodes, nodes/stat], verbs: [get]}]"), ""},
		"a group of the system":        {"{" + rbac + "kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: v}, subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: 'system:authentcated'}]}", `subjects[0].name: "system:authentcated" is not a user or group of the system; did you mean "system:authenticated"?`},
		"egress of an ingress policy":  {policy("policyTypes: [Ingress], egress: [{to: [{podSelector: {}}]}]"), "spec.egress: has no effect, since spec.policyTypes has no Egress"},
		"both directions":              {policy("policyTypes: [Ingress, Egress], egress: [{to: [{podSelector: {}}]}]"), ""},
		"a label that allows nothing":  {workload("networking.gardener.cloud/to-dns: alowed", ""), `"alowed" has no effect; the value is allowed`},
		"a label nobody reads":         {workload("networking.gardener.cloud/to-runtime-apisrver: allowed", ""), `did you mean "networking.gardener.cloud/to-runtime-apiserver"?`},
		"a connection that is none":    {workload("networking.resources.gardener.cloud/to-x-tcp-444: 'true'", ""), "allows nothing; the value is allowed"},
		"a type of availability":       {workload("high-availability-config.resources.gardener.cloud/type: sever", ""), `"sever" has no effect; the value is controller or server`},
		"labels that are read":         {workload("networking.gardener.cloud/to-dns: allowed, high-availability-config.resources.gardener.cloud/type: server", ""), ""},
		"a command in one text":        {workload("a: b", ", command: ['/bin/x --flag']"), `command[0]: no program is called "/bin/x --flag"; write "/bin/x"`},
		"a flag and its value":         {workload("a: b", ", args: [--v 4]"), `args[0]: no flag is called "--v 4"; write --v=4`},
		"a flag beside its value":      {workload("a: b", ", args: [--v, '4', '--text=a b', '- a b']"), ""},
		"a command of a shell":         {workload("a: b", ", command: [sh, -c, 'x --flag']"), ""},
		"a claim nobody mounts":        {set("other", "1Gi"), `volumeClaimTemplates[0].metadata.name: no container mounts the volume "data"`},
		"a claim of some bytes":        {set("data", "10"), "volumeClaimTemplates[0].spec.resources.requests.storage: 10 is 10 bytes"},
		"a claim":                      {set("data", "10Gi"), ""},
		"a day that never comes":       {job("0 0 31 2 *"), `spec.schedule: "0 0 31 2 *" never occurs`},
		"a budget for no pod":          {"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: b}, spec: {minAvailable: 1}}", "spec.selector: must be set"},
		"ports that are no JSON":       {"{apiVersion: v1, kind: Service, metadata: {name: a, namespace: b, annotations: {networking.resources.gardener.cloud/from-all-scrape-targets-allowed-ports: '[{protocol:TCP,port:1}]'}}, spec: {selector: {x: z}, ports: [{port: 1}]}}", "is not a JSON list of ports"},
		"ports":                        {"{apiVersion: v1, kind: Service, metadata: {name: a, namespace: b, annotations: {networking.resources.gardener.cloud/from-all-scrape-targets-allowed-ports: '[{\"protocol\":\"TCP\",\"port\":1}]'}}, spec: {selector: {x: z}, ports: [{port: 1}]}}", ""},
		"a target of an old API":       {"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: b}, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: extensions/v1beta1, kind: Deployment, name: c}}}", `spec.scaleTargetRef.apiVersion: a Deployment is of apps/v1, not of "extensions/v1beta1"`},
		"pods of another group":        {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a.example.org, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: ns}}, rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]}", `webhooks[0].rules[0].resources[0]: "pods" is not a resource of the API "apps"`},
		"a field that is required":     {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.org}, spec: {group: example.org, scope: Cluster, names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, required: [spc], properties: {spec: {type: object}}}}}]}}", `required[0]: there is no field "spc", so no object is ever valid; did you mean "spec"?`},
		"all of some groups":           {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a.example.org, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: ns}}, rules: [{apiGroups: ['*'], apiVersions: [v1], operations: [CREATE], resources: [pods, things]}]}]}", ""},
		"a day":                        {job("0 0 28 2 *"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkText(t, kubernetesKind(t, tt.object), tt.object, 36)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}

// TestAlerts: a rule records or alerts, and is unique.
func TestAlerts(t *testing.T) {
	kind := openKind("monitoring.coreos.com", "v1", "PrometheusRule")
	for name, tt := range map[string]struct{ rules, want string }{
		"a record that waits":  {"[{record: a, expr: up, for: 5m}]", "spec.groups[0].rules[0].for: belongs to an alert"},
		"twice":                {"[{alert: A, expr: up == 0}, {alert: A, expr: up == 0}]", "spec.groups[0].rules[1]: repeats rules[0]"},
		"always":               {"[{alert: A, expr: up == bool 0}]", "spec.groups[0].rules[0].expr: always fires"},
		"a label that is gone": {"[{alert: A, expr: sum by (job) (up) == 0, annotations: {text: '{{ $labels.instance }} of {{ $labels.job }}'}}]", "annotations[text]: the expression leaves no label instance: it has job"},
		"labels that it has":   {"[{alert: A, expr: sum by (job) (up) == 0, labels: {team: x}, annotations: {text: '{{ $labels.team }} of {{ $labels.job }}'}}]", ""},
		"any label":            {"[{alert: A, expr: up == 0, annotations: {text: '{{ $labels.instance }}'}}]", ""},
		"of two levels":        {"[{alert: A, expr: up == 0, labels: {severity: a}}, {alert: A, expr: up == 0, labels: {severity: b}}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkText(t, kind, "{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: a, namespace: b}, spec: {groups: [{name: g, rules: "+tt.rules+"}]}}", 36)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}
