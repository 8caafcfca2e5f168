// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// deploymentWith is a Deployment with one container in its pods.
func deploymentWith(container string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [" + container + "]}}}}"
}

// TestServerValidation: faults that an API server rejects are found in the same field.
func TestServerValidation(t *testing.T) {
	const (
		rbacHead   = "apiVersion: rbac.authorization.k8s.io/v1, "
		policyHead = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a, namespace: b}, spec: {podSelector: {}, "
		jobSpec    = "{template: {spec: {restartPolicy: %, containers: [{name: c, image: i}]}}}"
		hook       = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a.b.c, admissionReviewVersions: [v1], sideEffects: None, "
	)
	for name, tt := range map[string]struct{ object, want string }{
		"container":                {deploymentWith("{name: c, image: i, env: [{name: a, value: b}], resources: {requests: {cpu: 1}, limits: {cpu: 2}}}"), ""},
		"no image":                 {deploymentWith("{name: c}"), "spec.template.spec.containers[0].image: must be set"},
		"no name of a variable":    {deploymentWith("{name: c, image: i, env: [{value: x}]}"), "spec.template.spec.containers[0].env[0].name: must be set"},
		"requests above limits":    {deploymentWith("{name: c, image: i, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}"), `spec.template.spec.containers[0].resources.requests: "2": must be less than or equal to cpu limit of 1`},
		"no such volume":           {deploymentWith("{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}"), `spec.template.spec.containers[0].volumeMounts[0].name: "v": not found`},
		"a wrong volume":           {strings.Replace(deploymentWith("{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}"), "containers:", "volumes: [{name: v, secret: {secretName: s, defaultMode: 1644}}], containers:", 1), `spec.template.spec.volumes[0].secret.defaultMode: 1644: must be a number between 0 and 0777 (octal), both inclusive`},
		"name of a container":      {deploymentWith("{name: C, image: i}"), `spec.template.spec.containers[0].name: "C": a lowercase RFC 1123 label must consist`},
		"port":                     {deploymentWith("{name: c, image: i, ports: [{containerPort: 70000}]}"), "spec.template.spec.containers[0].ports[0].containerPort: 70000: must be between 1 and 65535"},
		"privileged":               {deploymentWith("{name: c, image: i, securityContext: {privileged: true}}"), ""},
		"two handlers of a probe":  {deploymentWith("{name: c, image: i, livenessProbe: {tcpSocket: {port: 1}, httpGet: {port: 1}}}"), "spec.template.spec.containers[0].livenessProbe.tcpSocket: may not specify more than 1 handler type"},
		"symbolic Secret":          {deploymentWith("{name: c, image: i, envFrom: [{secretRef: {name: s-" + SymbolicMark + "}}]}"), ""},
		"selector":                 {strings.Replace(deploymentWith("{name: c, image: i}"), "labels: {a: b}", "labels: {a: c}", 1), "spec.template.metadata.labels: `selector` does not match template `labels`"},
		"no selector":              {strings.Replace(deploymentWith("{name: c, image: i}"), "selector: {matchLabels: {a: b}}, ", "", 1), "spec.selector: must be set"},
		"replicas":                 {strings.Replace(deploymentWith("{name: c, image: i}"), "spec: {", "spec: {replicas: -1, ", 1), "spec.replicas: -1: must be greater than or equal to 0"},
		"no namespace":             {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "metadata.namespace: must be set"},
		"a namespace too much":     {"{" + rbacHead + "kind: ClusterRole, metadata: {name: a, namespace: b}}", "metadata.namespace: not allowed on this type"},
		"name":                     {"{apiVersion: v1, kind: ConfigMap, metadata: {name: My_Conf, namespace: b}}", `metadata.name: "My_Conf": a lowercase RFC 1123 subdomain must consist`},
		"key":                      {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {a/b: c}}", `data[a/b]: "a/b": a valid config key must consist`},
		"key of a Secret":          {"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: b}, stringData: {hunter/2: c}}", "data[hunter/2]: a valid config key must consist"},
		"type of a Secret":         {"{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: a, namespace: b}}", "data[tls.crt]: must be set"},
		"range":                    {policyHead + "egress: [{to: [{ipBlock: {cidr: 10.0.0.0/33}}]}]}}", `spec.egress[0].to[0].ipBlock.cidr: "10.0.0.0/33": must be a valid CIDR value`},
		"range outside":            {policyHead + "egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [192.168.0.0/16]}}]}]}}", "spec.egress[0].to[0].ipBlock.except[0]: \"192.168.0.0/16\": must be a strict subset of `cidr`"},
		"port of a policy":         {policyHead + "ingress: [{ports: [{port: 0}]}]}}", "spec.ingress[0].ports[0].port: 0: must be between 1 and 65535"},
		"role of a binding":        {"{" + rbacHead + "kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Rolle, name: v}}", `roleRef.kind: "Rolle" is not supported; use "ClusterRole"`},
		"subject":                  {"{" + rbacHead + "kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: v}, subjects: [{kind: ServiceAccount, name: s}]}", "subjects[0].namespace: must be set"},
		"verbs":                    {"{" + rbacHead + "kind: Role, metadata: {name: a, namespace: b}, rules: [{apiGroups: [''], resources: [pods]}]}", "rules[0].verbs: must be set"},
		"schedule":                 {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: b}, spec: {schedule: 61 * * * *, jobTemplate: {spec: " + strings.Replace(jobSpec, "%", "Never", 1) + "}}}", `spec.schedule: "61 * * * *": end of range (61) above maximum (59): 61`},
		"job":                      {"{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: b}, spec: " + strings.Replace(jobSpec, "%", "Never", 1) + "}", ""},
		"job for ever":             {"{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: b}, spec: " + strings.Replace(jobSpec, "%", "Always", 1) + "}", "spec.template.spec.restartPolicy: must be one of \"OnFailure\", \"Never\""},
		"disruption":               {"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: b}, spec: {minAvailable: 1, maxUnavailable: 1, selector: {matchLabels: {a: b}}}}", "spec: minAvailable and maxUnavailable cannot be both set"},
		"headless Service":         {"{apiVersion: v1, kind: Service, metadata: {name: a, namespace: b}, spec: {clusterIP: None, ports: [{port: 80}]}}", ""},
		"Service that is checked":  {"{apiVersion: v1, kind: Service, metadata: {name: a, namespace: b}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]}}", ""},
		"Service without ports":    {"{apiVersion: v1, kind: Service, metadata: {name: a, namespace: b}, spec: {}}", "spec.ports: must be set"},
		"name of a Service":        {"{apiVersion: v1, kind: Service, metadata: {name: a.b, namespace: b}, spec: {ports: [{port: 80}]}}", `metadata.name: "a.b": must not contain dots`},
		"autoscaler":               {"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: b}, spec: {minReplicas: 3, maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}", "spec.maxReplicas: 2: must be greater than or equal to `minReplicas`"},
		"webhook":                  {hook + "clientConfig: {url: 'http://a'}}]}", `webhooks[0].clientConfig.url: "http": 'https' is the only allowed URL scheme`},
		"expression":               {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: a}, spec: {matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, validations: [{expression: 'object.spec ='}]}}", "spec.validations[0].expression: "},
		"priority":                 {"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 2000000000}", "value: "},
		"storage":                  {"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, namespace: b}, spec: {resources: {requests: {storage: 1Gi}}}}", "spec.accessModes: must be set"},
		"claim of a StatefulSet":   {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: b}, spec: {podManagementPolicy: Never, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}", "spec.podManagementPolicy: \"Never\" is not supported"},
		"an older version":         {"{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: b}, spec: {minReplicas: 0, maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}", "spec.minReplicas: 0: must be greater than or equal to 1"},
		"definition":               {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.x.org}, spec: {group: x.org, scope: Namespaced, names: {kind: A, plural: bs}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}", `metadata.name: "as.x.org": must be spec.names.plural+"."+spec.group`},
		"pattern of a definition":  {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.x.org}, spec: {group: x.org, scope: Namespaced, names: {kind: A, plural: as}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string, pattern: '('}}}}}]}}", "spec.versions[0].schema.openAPIV3Schema.properties[a].pattern: "},
		"a kind of which no more":  {"{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: A, namespace: b}, revision: 1}", `metadata.name: "A": a lowercase RFC 1123 subdomain must consist`},
		"annotation":               {"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: b, annotations: {a/b/c: x}}}", `metadata.annotations: "a/b/c": a valid label key must consist`},
		"without validators":       {"{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: A}, spec: {}}", `metadata.name: "A": a lowercase RFC 1123 subdomain must consist`},
		"nothing more of a symbol": {"{apiVersion: v1, kind: Secret, metadata: {name: a-" + SymbolicMark + ", namespace: b}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkText(t, kubernetesKind(t, tt.object), tt.object, 36)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
			assert.NotContains(t, got, "regex used")
		})
	}
}

// TestKindsWithoutValidation lists the kinds with checks of metadata only: they are not declared,
// or younger than any cluster here.
func TestKindsWithoutValidation(t *testing.T) {
	without := map[string]bool{}
	removedOrNotDeclared := []string{"extensions", "authentication.k8s.io", "authorization.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io", "resource.k8s.io", "storagemigration.k8s.io"}
	for _, gvk := range KubernetesKinds() {
		internal, err := legacyscheme.Scheme.New(schema.GroupVersionKind{Group: gvk.Group, Version: runtime.APIVersionInternal, Kind: gvk.Kind})
		if !slices.Contains(removedOrNotDeclared, gvk.Group) && (err != nil || validators[reflect.TypeOf(internal)] == nil) {
			without[schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}.String()] = true
		}
	}
	assert.Equal(t, []string{
		"Binding", "ComponentStatus", "CompositePodGroup.scheduling.k8s.io",
		// in another scheme, see validateDefinition
		"CustomResourceDefinition.apiextensions.k8s.io",
		"Event", "Event.events.k8s.io", "Eviction.policy", "LeaseCandidate.coordination.k8s.io", "PodCertificateRequest.certificates.k8s.io",
		"PodGroup.scheduling.k8s.io", "RangeAllocation", "Scale.apps", "Scale.autoscaling", "Workload.scheduling.k8s.io",
	}, slices.Sorted(maps.Keys(without)))
}
