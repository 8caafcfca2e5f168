// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// objectCase is an object and a part of its findings, "" for none.
type objectCase struct{ object, want string }

// checkObjects checks objects of Kubernetes kinds, and of other kinds as if their definitions
// accepted anything.
func checkObjects(t *testing.T, cases map[string]objectCase) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			var head struct{ APIVersion, Kind string }
			require.NoError(t, yaml.Unmarshal([]byte(tt.object), &head))
			gvk := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
			kind := Kubernetes(gvk)
			if kind == nil {
				kind = openKind(gvk.Group, gvk.Version, gvk.Kind)
			}
			got := checkText(t, kind, tt.object, 36)
			var object unstructured.Unstructured
			require.NoError(t, yaml.Unmarshal([]byte(tt.object), &object.Object))
			for _, hint := range Hints(&object) {
				got += fmt.Sprintf("%s: %s\n", hint.Path, hint.Message)
			}
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}

func TestBindings(t *testing.T) {
	binding := func(subject string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: v}, subjects: [{apiGroup: rbac.authorization.k8s.io, " + subject + "}]}"
	}
	checkObjects(t, map[string]objectCase{
		"a group of one namespace":   {binding("kind: Group, name: 'system:serviceaccounts:garden'"), ""},
		"the user of an account":     {binding("kind: User, name: 'system:serviceaccount:garden:app'"), ""},
		"a namespace as an account":  {binding("kind: Group, name: 'system:serviceaccount:garden'"), `subjects[0].name: "system:serviceaccount:garden" is not a group; did you mean "system:serviceaccounts:garden"?`},
		"an account as a group":      {binding("kind: Group, name: 'system:serviceaccount:garden:app'"), `is not a group but a user; set the kind User`},
		"a namespace as a user":      {binding("kind: User, name: 'system:serviceaccounts:garden'"), "is not a user but a group of ServiceAccounts"},
		"an account without a name":  {binding("kind: User, name: 'system:serviceaccount:garden'"), `is not a user: the user of a ServiceAccount is called "system:serviceaccount:NAMESPACE:NAME"`},
		"a user of anybody":          {binding("kind: User, name: 'garden:app'"), ""},
		"an unknown fact as a group": {binding("kind: Group, name: 'system:serviceaccount:" + SymbolicMark + "'"), ""},
	})
}

func TestClusterRoles(t *testing.T) {
	role := func(labels, rule string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, labels: {" + labels + "}}, rules: [{" + rule + "}]}"
	}
	checkObjects(t, map[string]objectCase{
		"paths":                     {role("", "nonResourceURLs: [/healthz, /metrics/*, '*'], verbs: [get]"), ""},
		"a path without a slash":    {role("", "nonResourceURLs: [/healthz, metrics], verbs: [get]"), `rules[0].nonResourceURLs[1]: "metrics" matches no request; write "/metrics"`},
		"aggregated":                {role("rbac.authorization.k8s.io/aggregate-to-view: 'true', rbac.gardener.cloud/aggregate-to-project-member: 'true', example.org/aggregate-to-views: 'true'", "nonResourceURLs: [/a], verbs: [get]"), ""},
		"aggregated to nothing":     {role("rbac.authorization.k8s.io/aggregate-to-views: 'true'", "nonResourceURLs: [/a], verbs: [get]"), `metadata.labels[rbac.authorization.k8s.io/aggregate-to-views]: nothing reads this label; did you mean "rbac.authorization.k8s.io/aggregate-to-view"?`},
		"a name of listed objects":  {role("", "apiGroups: [''], resources: [secrets], resourceNames: [a], verbs: [get, list, watch]"), ""},
		"all of a name are deleted": {role("", "apiGroups: [''], resources: [secrets], resourceNames: [a], verbs: [deletecollection]"), "rules[0].resourceNames: grants nothing"},
	})
}

func TestMisspeltWords(t *testing.T) {
	policy := func(spec string) string {
		return "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a, namespace: b}, spec: {podSelector: {}, " + spec + "}}"
	}
	webhook := func(selector string) string {
		return "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a.example.org, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: ns}}, namespaceSelector: " + selector + "}]}"
	}
	service := func(ports string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: b, annotations: {networking.resources.gardener.cloud/from-world-to-ports: '" + ports + "'}}, spec: {selector: {x: z}, ports: [{port: 1}]}}"
	}
	job := func(seconds string) string {
		return "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: b}, spec: {schedule: '@daily', startingDeadlineSeconds: " + seconds + ", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}"
	}
	prometheus := func(modes string) string {
		return "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: a, namespace: b}, spec: {storage: {volumeClaimTemplate: {spec: {accessModes: [" + modes + "]}}}}}"
	}
	scaler := func(number string) string {
		return "{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: a, namespace: b}, spec: {updatePolicy: {minReplicas: " + number + "}}}"
	}
	checkObjects(t, map[string]objectCase{
		"pod security":          {"{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {pod-security.kubernetes.io/enforce: baseline, pod-security.kubernetes.io/warn-version: latest}}}", ""},
		"a mode of security":    {"{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {pod-security.kubernetes.io/enfore: baseline}}}", `metadata.labels[pod-security.kubernetes.io/enfore]: nothing reads this label; did you mean "pod-security.kubernetes.io/enforce"?`},
		"namespaces":            {webhook("{matchLabels: {gardener.cloud/role: shoot}, matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [a]}, {key: example.org/roles, operator: Exists}]}"), ""},
		"no such namespace":     {webhook("{matchLabels: {gardener.cloud/roles: shoot}}"), `webhooks[0].namespaceSelector.matchLabels[gardener.cloud/roles]: no Namespace has the label "gardener.cloud/roles"; did you mean "gardener.cloud/role"?`},
		"no such expression":    {webhook("{matchExpressions: [{key: kubernetes.io/metadata.nam, operator: In, values: [a]}]}"), `webhooks[0].namespaceSelector.matchExpressions[0].key: no Namespace has the label`},
		"namespaces of peers":   {policy("ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.nme: a}}}]}]"), `spec.ingress[0].from[0].namespaceSelector.matchLabels[kubernetes.io/metadata.nme]`},
		"from nobody":           {policy("ingress: [{from: [], ports: [{port: 1}]}]"), "spec.ingress[0].from: an empty list allows every peer"},
		"to nobody":             {policy("egress: [{to: [{podSelector: {}}]}, {to: []}], policyTypes: [Egress]"), "spec.egress[1].to: an empty list allows every peer"},
		"from everybody":        {policy("ingress: [{}], policyTypes: [Ingress]"), ""},
		"no rules":              {policy("ingress: [], policyTypes: [Ingress]"), ""},
		"ports":                 {service(`[{"protocol":"TCP","port":1},{"port":2}]`), ""},
		"a small protocol":      {service(`[{"protocol":"tcp","port":1}]`), `metadata.annotations[networking.resources.gardener.cloud/from-world-to-ports]: "tcp" is not a protocol; did you mean "TCP"?`},
		"a short deadline":      {job("9"), "spec.startingDeadlineSeconds: 9 seconds may be over"},
		"a deadline":            {job("10"), ""},
		"a mode":                {prometheus("ReadWriteOnce"), ""},
		"a mode misspelt":       {prometheus("ReadWriteOnc"), `spec.storage.volumeClaimTemplate.spec.accessModes[0]: "ReadWriteOnc" is not an access mode of a volume; did you mean "ReadWriteOnce"?`},
		"a short mode":          {prometheus("RWO"), `"RWO" is not an access mode of a volume`},
		"modes of another kind": {"{apiVersion: example.org/v1, kind: Door, metadata: {name: a, namespace: b}, spec: {accessModes: [Key, Card]}}", ""},
		"near in another kind":  {"{apiVersion: example.org/v1, kind: Store, metadata: {name: a, namespace: b}, spec: {accessModes: [ReadWriteMny]}}", `spec.accessModes[0]: "ReadWriteMny"`},
		"a number of replicas":  {scaler("1"), ""},
		"no replicas":           {scaler("0"), "spec.updatePolicy.minReplicas: 0 is not above 0"},
	})
}
