// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// namingApp is a component whose objects refer to each other, and to a Secret from elsewhere.
const namingApp = `package component

component: bundles: app: {cluster: "runtime", direct: true, source: cue: [
	{apiVersion: "apps/v1", kind: "Deployment", metadata: {name: "app", namespace: "garden"}, spec: {
		replicas: 2
		selector: matchLabels: app: "app"
		template: {metadata: labels: {app: "app", "networking.gardener.cloud/to-dns": "allowed"}, spec: {
			serviceAccountName: "app"
			priorityClassName: "important"
			containers: [{name: "app", image: "i:1", args: ["--size=1"], ports: [{name: "http", containerPort: 80}], env: [{name: "MODE", valueFrom: configMapKeyRef: {name: "app", key: "mode"}}]}]
			volumes: [{name: "config", configMap: name: "app"}, {name: "made", secret: secretName: "made-elsewhere"}]
		}}
	}},
	{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "app", namespace: "garden"}, data: {size: "12", mode: "on", "config.yaml": "leaderElection: {leaderElect: true}"}},
	{apiVersion: "v1", kind: "ServiceAccount", metadata: {name: "app", namespace: "garden"}},
	{apiVersion: "v1", kind: "Service", metadata: {name: "app", namespace: "garden", labels: app: "app"}, spec: {selector: app: "app", ports: [{name: "metrics", port: 80, targetPort: "http"}]}},
	{apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: {name: "app", namespace: "garden"}, spec: {maxUnavailable: 1, selector: matchLabels: app: "app"}},
	{apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", metadata: {name: "app", namespace: "garden"}, rules: []},
	{apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding", metadata: {name: "app", namespace: "garden"}, roleRef: {apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "app"}, subjects: [{kind: "ServiceAccount", name: "app", namespace: "garden"}]},
	{apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", metadata: {name: "app", namespace: "garden"}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: "apps/v1", kind: "Deployment", name: "app"}, metrics: [{type: "Resource", resource: {name: "cpu", target: {type: "Utilization", averageUtilization: 80}}}]}},
]}
`

// deploymentOf and budgetOf are in CUE, for a name n and for "other".
const (
	deploymentOf = `apiVersion: "apps/v1", kind: "Deployment", metadata: {name: n, namespace: "garden"}, spec: {selector: matchLabels: app: n, template: {metadata: labels: app: n, spec: containers: [{name: "a", image: "i:1"}]}}`
	budgetOf     = `{apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: {name: "other", namespace: "garden"}, spec: {maxUnavailable: 1, selector: matchLabels: app: "other"}}`
)

// TestOverlayReferences: references in an overlay need their object in any component, in Git, or in
// spec.external.
func TestOverlayReferences(t *testing.T) {
	patch := func(kind, spec string) map[string]string {
		return map[string]string{"kustomization.yaml": "patches:\n- target: {kind: " + kind + "}\n  patch: |\n    {apiVersion: x, kind: " + kind + ", metadata: {name: app},\n    " + spec + "}\n"}
	}
	operation := func(kind, path, value string) map[string]string {
		return operationPatch(kind, "- op: replace\n  path: "+path+"\n  value: "+value)
	}
	added := func(text string) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [more.yaml]\n", "more.yaml": text}
	}
	const place = "components/garden/app/kustomization.yaml:"
	budget := func(name, selector string) map[string]string {
		return added("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: " + name + ", namespace: garden}\nspec:\n  minAvailable: 1\n  selector: " + selector + "\n")
	}
	managed := func(class string) map[string]string {
		return added("apiVersion: resources.gardener.cloud/v1alpha1\nkind: ManagedResource\nmetadata: {name: x, namespace: garden}\nspec:\n  class: " + class + "\n  secretRefs: [{name: made-elsewhere}]\n")
	}
	autoscaler := func(kind, target, container string) map[string]string {
		return added("apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: x, namespace: garden}\nspec:\n  targetRef: {apiVersion: apps/v1, kind: " + kind + ", name: " + target + "}\n  resourcePolicy:\n    containerPolicies:\n    - containerName: " + container + "\n")
	}
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"policy of a container":       {autoscaler("Deployment", "app", "app\n      controlledResources: [memory]"), ""},
		"policy of all":               {autoscaler("Deployment", "app", "'*'\n      controlledResources: [memory]"), ""},
		"policy, a letter less":       {autoscaler("Deployment", "app", "appp"), `more.yaml:8:7: warning: VerticalPodAutoscaler garden/x: spec.resourcePolicy.containerPolicies[0].containerName: Deployment "app" has no container "appp"`},
		"policy of another one":       {autoscaler("Deployment", "app", "something"), `has no container "something"`},
		"policy of nobody":            {autoscaler("Deployment", "nobody", "something"), `spec.targetRef.name`},
		"API that is near":            {added("apiVersion: extensions.gardener.clod/v1alpha1\nkind: Extension\nmetadata: {name: x, namespace: garden}\nspec: {type: a}\n"), `components/garden/app/more.yaml:1:13: warning: apiVersion: no rendered object defines the API "extensions.gardener.clod"; did you mean "extensions.gardener.cloud"? [landscape/overlay-reference]`},
		"API of others":               {added("apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: x, namespace: garden}\nspec: {}\n"), ""},
		"class":                       {managed("seed"), ""},
		"class, the default":          {managed("resources"), ""},
		"class, not set":              {managed("null"), ""},
		"class, empty":                {managed(`""`), ""},
		"class, a letter less":        {managed("sed"), `more.yaml:5:3: warning: ManagedResource garden/x: spec.class: no resource manager has the class "sed"`},
		"class, with a guess":         {managed("resource"), `; did you mean "resources"?`},
		"class of extensions":         {managed("garden"), `no resource manager has the class "garden", so nothing is applied`},
		"class of a Shoot":            {managed("shoot"), `no resource manager has the class "shoot"`},
		"class, in upper case":        {managed("Seed"), `did you mean "seed"?`},
		"class, every one":            {managed("'*'"), `no resource manager has the class "*"`},
		"ServiceAccount":              {deploymentPatch("{template: {spec: {serviceAccountName: ap}}}"), place + `5:26: warning: Deployment garden/app: spec.template.spec.serviceAccountName: ServiceAccount "ap" is neither rendered for the cluster nor declared in Git; did you mean "app"? [landscape/overlay-reference]`},
		"PriorityClass":               {deploymentPatch("{template: {spec: {priorityClassName: importent}}}"), `PriorityClass "importent" is neither rendered for the cluster nor declared in Git`},
		"ConfigMap of a volume":       {deploymentPatch("{template: {spec: {volumes: [{name: config, configMap: {name: aap}}]}}}"), `spec.template.spec.volumes[0].configMap.name: ConfigMap "aap" is neither rendered for the cluster nor declared in Git; did you mean "app"?`},
		"key of a ConfigMap":          {operation("Deployment", "/spec/template/spec/containers/0/env/0/valueFrom/configMapKeyRef/key", "modde"), place + `6:14: warning: Deployment garden/app: spec.template.spec.containers[0].env[0].valueFrom.configMapKeyRef.key: ConfigMap "app" has no key "modde"; did you mean "mode"?`},
		"key that was there":          {operationPatch("ConfigMap", "- {op: remove, path: /data/mode}"), `ConfigMap "app" has no key "mode"; it has config.yaml, size`},
		"Secret":                      {containerPatch("envFrom: [{secretRef: {name: settings}}]"), `spec.template.spec.containers[0].envFrom[0].secretRef.name: Secret "settings" is neither rendered for the cluster nor declared in Git`},
		"Secret made elsewhere":       {containerPatch("envFrom: [{secretRef: {name: made-elsewhere}}]"), ""},
		"optional":                    {containerPatch("envFrom: [{secretRef: {name: settings, optional: true}}]"), ""},
		"labels of pods":              {operationPatch("Deployment", "- {op: replace, path: /spec/template/metadata/labels, value: {app: other}}\n- {op: replace, path: /spec/selector/matchLabels, value: {app: other}}"), "selects nothing: no pods rendered for the cluster have the labels app=app"},
		"labels for all":              {map[string]string{"kustomization.yaml": "# labels\ncommonLabels: {team: x}\n"}, place + "2:1: warning: Deployment garden/app: spec.selector: changes, which API servers reject for existing objects: keep the selector; write labels: [{pairs: {…}, includeTemplates: true}]"},
		"labels with selectors":       {map[string]string{"kustomization.yaml": "labels:\n- pairs: {team: x}\n  includeSelectors: true\n"}, place + "1:1: warning: Deployment garden/app: spec.selector: changes, which API servers reject for existing objects: keep the selector; write labels: [{pairs"},
		"labels of others":            {map[string]string{"kustomization.yaml": "labels:\n- pairs: {app: all}\n"}, place + `1:1: warning: Service garden/app: metadata.labels[app]: the label was "app", and others may select by it`},
		"selector by a patch":         {deploymentPatch("{selector: {matchLabels: {more: x}}, template: {metadata: {labels: {more: x}}}}"), "Deployment garden/app: spec.selector: changes, which API servers reject for existing objects: keep the selector"},
		"way of pods":                 {operationPatch("Deployment", "- {op: remove, path: /spec/template/metadata/labels/networking.gardener.cloud~1to-dns}"), "Deployment garden/app: spec.template.metadata.labels: the label networking.gardener.cloud/to-dns is removed: without it, the network policies of Gardener block the traffic that it allows"},
		"way of pods, by null":        {deploymentPatch("{template: {metadata: {labels: {networking.gardener.cloud/to-dns: null}}}}"), "the label networking.gardener.cloud/to-dns is removed"},
		"all of a container":          {deploymentPatch("{template: {spec: {containers: [{$patch: replace}, {name: app, image: 'i:1', ports: [{name: http, containerPort: 80}]}]}}}"), "Deployment garden/app: spec.template.spec.containers[0]: the container app loses all arguments"},
		"field in a text":             {operation("ConfigMap", "/data/config.yaml", "'leaderElecton: {leaderElect: true}'"), `ConfigMap garden/app: data[config.yaml]: the component does not have the field leaderElecton; did you mean "leaderElection"?`},
		"another field":               {operation("ConfigMap", "/data/config.yaml", "'leaderElection: {leaderElect: true, more: 1}'"), ""},
		"rights for anyone":           {added("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: x, namespace: garden}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: 'system:authenticated'}]\n"), `subjects[0].name: "system:authenticated" means anyone: each user, or each pod, gets the rights of ClusterRole view`},
		"webhook for all pods":        {added("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: x}\nwebhooks: [{name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: app, namespace: garden, port: 80}}, rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]\n"), "webhooks[0].failurePolicy: no pod of the cluster starts while the webhook does not answer"},
		"webhook for some pods":       {added("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: x}\nwebhooks: [{name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], objectSelector: {matchLabels: {app: x}}, clientConfig: {service: {name: app, namespace: garden, port: 80}}, rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]\n"), ""},
		"flag given twice":            {containerPatch("args: [--size=1, --size=2]"), "args[1]: --size is already given, as 1: most programs take the last one; replace it"},
		"time without a unit":         {containerPatch("args: [--size=1, --request-timeout=60]"), "args[1]: --request-timeout=60: is not a duration such as 30s, 5m or 1h30m"},
		"switch in words":             {containerPatch("args: [--size=1, --leader-elect=yes]"), "args[1]: --leader-elect=yes: a switch is true or false"},
		"all modes":                   {containerPatch("args: [--size=1, '--authorization-mode=Node,AlwaysAllow']"), "args[1]: --authorization-mode=Node,AlwaysAllow: everyone may do everything"},
		"cipher suite":                {containerPatch("args: [--size=1, --tls-cipher-suites=TLS_AES_128_GCM_SHA512]"), `there is no cipher suite "TLS_AES_128_GCM_SHA512"; did you mean "TLS_AES_128_GCM_SHA256"?`},
		"flags that are fine":         {containerPatch("args: [--size=1, --request-timeout=1m, --min-request-timeout=300, --leader-elect=true, --audit-log-maxage=30]"), ""},
		"second owner of pods":        {added("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: garden}\nspec: {selector: {matchLabels: {app: single}}, template: {metadata: {labels: {app: single}}, spec: {containers: [{name: a, image: 'i:1'}]}}}\n"), "Deployment garden/x: spec.selector: Deployment single has the same selector"},
		"few replicas":                {autoscaler("Deployment", "app", "app\n      controlledResources: [memory]\n  updatePolicy: {minReplicas: 3}"), "spec.updatePolicy.minReplicas: Deployment app has 2 replicas, so the autoscaler evicts none of them"},
		"policy without binding":      {added("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: x}\nspec: {matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}, validations: [{expression: 'true'}]}\n"), "ValidatingAdmissionPolicy x: metadata.name: has no effect: no ValidatingAdmissionPolicyBinding names it"},
		"quota without limits":        {added("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: x, namespace: garden}\nspec: {hard: {limits.cpu: '10'}}\n"), "spec.hard[limits.cpu]: API servers then reject pods without limits.cpu, and these have none: Deployment app"},
		"label of a client":           {deploymentPatch("{template: {metadata: {labels: {networking.resources.gardener.cloud/to-ap-tcp-http: allowed}}}}"), `no Service and port is reached by the label; did you mean "networking.resources.gardener.cloud/to-app-tcp-http"?`},
		"label of another port":       {deploymentPatch("{template: {metadata: {labels: {networking.resources.gardener.cloud/to-app-tcp-8443: allowed}}}}"), `did you mean "networking.resources.gardener.cloud/to-app-tcp-http"?`},
		"label of others":             {deploymentPatch("{template: {metadata: {labels: {networking.resources.gardener.cloud/to-all-shoots-kube-apiserver-tcp-443: allowed}}}}"), ""},
		"port for the selected world": {map[string]string{"kustomization.yaml": "patches:\n- target: {kind: Service}\n  patch: |\n    {apiVersion: v1, kind: Service, metadata: {name: app, annotations: {networking.resources.gardener.cloud/from-world-to-ports: '[{\"port\":443,\"protocol\":\"TCP\"}]'}}}\n"}, "the selected pods have no port 443; they have 80, http"},
		"alertmanager":                {added("apiVersion: monitoring.coreos.com/v1\nkind: Prometheus\nmetadata: {name: x, namespace: garden}\nspec: {ruleSelector: {matchLabels: {prometheus: nobody}}, alerting: {alertmanagers: [{namespace: garden, name: alertmanger, port: metrics}]}}\n"), `spec.alerting.alertmanagers[0].name: Service "alertmanger" is neither rendered for the cluster nor declared in Git`},
		"selector of rules":           {added("apiVersion: monitoring.coreos.com/v1\nkind: Prometheus\nmetadata: {name: x, namespace: garden}\nspec: {ruleSelector: {matchLabels: {prometheus: nobody}}}\n"), "spec.ruleSelector.matchLabels: selects nothing: no PrometheusRule rendered for the cluster has the labels"},
		"a patch that was copied":     {map[string]string{"kustomization.yaml": "resources: [more.yaml]\npatches:\n- target: {kind: ConfigMap, name: app}\n  patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: other\n    data: {more: x}\n", "more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: garden}\n"}, place + `8:7: warning: patches[0]: metadata.name: the patch names ConfigMap "other", but its target is "app"`},
		"a key mounted alone":         {containerPatch("volumeMounts: [{name: config, mountPath: /x, subPath: sise}, {name: made, mountPath: /y}]"), `spec.template.spec.containers[0].volumeMounts[0].subPath: ConfigMap "app" has no key "sise"; did you mean "size"?`},
		"job of an alert":             {added("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: x, namespace: garden, labels: {prometheus: garden}}\nspec: {groups: [{name: a, rules: [{alert: A, expr: 'up{job=\"singel\"} == 0'}]}]}\n"), `spec.groups[0].rules[0].expr: no target has the job "singel"; did you mean "single"?`},
		"job that there is":           {added("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: x, namespace: garden, labels: {prometheus: garden}}\nspec: {groups: [{name: a, rules: [{alert: A, expr: 'up{job=\"single\"} == 0'}, {alert: B, expr: 'up{job=\"elsewhere\"} == 0'}]}]}\n"), ""},
		"rules without a label":       {added("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: x, namespace: garden}\nspec: {groups: [{name: a, rules: [{alert: A, expr: 'up == 0'}]}]}\n"), "metadata.labels[prometheus]: no Prometheus rendered for the cluster selects a PrometheusRule without the label prometheus; they select garden"},
		"all arguments":               {operationPatch("Deployment", "- {op: add, path: /spec/template/spec/containers/0/args, value: [--more=1]}"), "Deployment garden/app: spec.template.spec.containers[0]: the container app loses --size, because the patch replaces the list or item"},
		"an argument for another":     {operationPatch("Deployment", "- {op: replace, path: /spec/template/spec/containers/0/args/0, value: --more=1}"), "the container app loses --size"},
		"an argument less":            {operationPatch("Deployment", "- {op: remove, path: /spec/template/spec/containers/0/args/0}"), ""},
		"gateway":                     {added("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: x, namespace: garden}\nspec: {hosts: [a.example.com], gateways: [nope], http: [{route: [{destination: {host: ap.garden.svc.cluster.local, port: {number: 80}}}]}]}\n"), `spec.gateways[0]: Gateway "nope" is neither rendered for the cluster nor declared in Git`},
		"host of a destination":       {added("apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: x, namespace: garden}\nspec: {host: ap.garden.svc.cluster.local}\n"), `spec.host: Service "ap" is neither rendered for the cluster nor declared in Git`},
		"host elsewhere":              {added("apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: x, namespace: garden}\nspec: {host: api.example.com}\n"), ""},
		"labels of objects":           {map[string]string{"kustomization.yaml": "labels:\n- pairs: {team: x}\n  includeTemplates: true\n"}, ""},
		"selector of a Service":       {operation("Service", "/spec/selector", "{app: ap}"), place + "6:14: warning: Service garden/app: spec.selector: selects nothing: no pods rendered for the cluster have the labels app=ap"},
		"port by name":                {operation("Service", "/spec/ports/0/targetPort", "htp"), `Service garden/app: spec.ports[0].targetPort: the selected pods have no port htp; did you mean "http"?`},
		"port by number":              {operation("Service", "/spec/ports/0/targetPort", "8080"), "the selected pods have no port 8080; they have 80, http"},
		"budget":                      {operation("PodDisruptionBudget", "/spec/selector/matchLabels", "{app: ap}"), "PodDisruptionBudget garden/app: spec.selector.matchLabels: selects nothing"},
		"second budget":               {budget("more", "{matchLabels: {app: app}}"), "components/garden/app/more.yaml:6:3: warning: PodDisruptionBudget garden/more: spec.selector: PodDisruptionBudget app also selects pods of Deployment app; API servers evict no pod with two budgets"},
		"budget for all pods":         {budget("more", "{}"), "more.yaml:6:3: warning: PodDisruptionBudget garden/more: spec.selector: PodDisruptionBudget app also selects pods of Deployment app; API servers evict no pod with two budgets"},
		"budget by expression":        {budget("more", "{matchExpressions: [{key: app, operator: In, values: [app, ap]}]}"), "PodDisruptionBudget app also selects pods of Deployment app; API servers evict no pod with two budgets"},
		"budget of another one":       {budget("more", "{matchLabels: {app: other}}"), "PodDisruptionBudget other also selects pods of Deployment other; API servers evict no pod with two budgets"},
		"budget made wider":           {operation("PodDisruptionBudget", "/spec/selector", "{matchExpressions: [{key: app, operator: Exists}]}"), place + "6:14: warning: PodDisruptionBudget garden/app: spec.selector: PodDisruptionBudget other also selects pods of Deployment other; API servers evict no pod with two budgets"},
		"budget renamed":              {map[string]string{"kustomization.yaml": "patches:\n- target: {kind: PodDisruptionBudget}\n  options: {allowNameChange: true}\n  patch: |\n    - {op: replace, path: /metadata/name, value: app-x}\n"}, ""},
		"budget of no other":          {budget("more", "{matchLabels: {app: single}}"), ""},
		"role":                        {operation("RoleBinding", "/roleRef/name", "ap"), `RoleBinding garden/app: roleRef.name: Role "ap" is neither rendered for the cluster nor declared in Git; did you mean "app"?`},
		"role of Kubernetes":          {operation("RoleBinding", "/roleRef", "{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}"), ""},
		"subject":                     {operation("RoleBinding", "/subjects/0/name", "ap"), `subjects[0].name: ServiceAccount "ap" is neither rendered for the cluster nor declared in Git`},
		"target of a scaler":          {operation("HorizontalPodAutoscaler", "/spec/scaleTargetRef/name", "ap"), `spec.scaleTargetRef.name: Deployment "ap" is neither rendered for the cluster nor declared in Git`},
		"what others name goes":       {patch("ServiceAccount", "$patch: delete"), `Deployment garden/app: spec.template.spec.serviceAccountName: ServiceAccount "app" is neither rendered for the cluster nor declared in Git`},
		"monitor of nothing":          {added("apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {app: ap}}\n  endpoints: [{port: metrics}]\n"), "components/garden/app/more.yaml:5:14: warning: ServiceMonitor x: spec.selector.matchLabels: selects nothing: no Services rendered for the cluster have the labels app=ap"},
		"port of a monitor":           {added("apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {app: app}}\n  endpoints: [{port: metrix}]\n"), `spec.endpoints[0].port: the selected Services have no port metrix; did you mean "metrics"?`},
		"a monitor that is fine":      {added("apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {app: app}}\n  endpoints: [{port: metrics}]\n"), ""},
		"backend of an Ingress":       {added("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x}\nspec: {defaultBackend: {service: {name: ap, port: {number: 80}}}}\n"), `spec.defaultBackend.service.name: Service "ap" is neither rendered for the cluster nor declared in Git`},
		"namespace":                   {added("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  namespace: gardn\n"), `components/garden/app/more.yaml:5:3: warning: ConfigMap gardn/x: metadata.namespace: Namespace "gardn" is neither rendered for the cluster nor declared in Git`},
		"namespace of others":         {added("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: garden}\n"), ""},
		"policy of a binding":         {added("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: x}\nspec: {policyName: ap, validationActions: [Deny]}\n"), `spec.policyName: ValidatingAdmissionPolicy "ap" is neither rendered for the cluster nor declared in Git`},
		"rules for no one":            {added("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: x, labels: {prometheus: gardn}}\nspec: {groups: []}\n"), `metadata.labels[prometheus]: no Prometheus rendered for the cluster selects a PrometheusRule with the label prometheus=gardn; did you mean "garden"?`},
		"rules for another one":       {added("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: x, labels: {prometheus: garden}}\nspec: {groups: []}\n"), ""},
		"of another component":        {deploymentPatch("{template: {spec: {priorityClassName: other}}}"), ""},
		"second autoscaler":           {autoscaler("Deployment", "app", "'*'\n---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: more, namespace: garden}\nspec:\n  targetRef: {apiVersion: apps/v1, kind: Deployment, name: app}"), "VerticalPodAutoscaler garden/x: spec.targetRef.name: VerticalPodAutoscaler more also scales Deployment app, and both counteract each other"},
		"metric of a container":       {operation("HorizontalPodAutoscaler", "/spec/metrics", "[{type: ContainerResource, containerResource: {name: cpu, container: ap, target: {type: AverageValue, averageValue: 1}}}]"), `spec.metrics[0].containerResource.container: Deployment "app" has no container "ap"; did you mean "app"?`},
		"utilization of nothing":      {operation("HorizontalPodAutoscaler", "/spec/metrics/0/resource/name", "memory"), `spec.metrics[0].resource.target.type: a utilization is a share of the request, and containers of Deployment "app" have no request of memory: app`},
		"budget of all":               {operationPatch("PodDisruptionBudget", "- {op: remove, path: /spec/maxUnavailable}\n- {op: add, path: /spec/minAvailable, value: 100%}"), "PodDisruptionBudget garden/app: spec.minAvailable: all pods must be available: no pod can be evicted"},
		"budget of none":              {operation("PodDisruptionBudget", "/spec/maxUnavailable", "0"), "spec.maxUnavailable: no pod may be unavailable: no pod can be evicted"},
		"user of an account":          {operation("RoleBinding", "/subjects/0", "{kind: User, apiGroup: rbac.authorization.k8s.io, name: 'system:serviceaccount:garden:ap'}"), `subjects[0].name: ServiceAccount "ap" is neither rendered for the cluster nor declared in Git`},
		"namespace of a peer":         {added("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x, namespace: garden}\nspec: {podSelector: {matchLabels: {app: app}}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: gardn}}}]}]}\n"), `Namespace "gardn" is neither rendered for the cluster nor declared in Git`},
		"port of a policy":            {added("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x, namespace: garden}\nspec: {podSelector: {matchLabels: {app: app}}, policyTypes: [Ingress], ingress: [{ports: [{port: 8081}]}]}\n"), "spec.ingress[0].ports[0].port: the selected pods have no port 8081"},
		"protocol of a policy":        {added("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x, namespace: garden}\nspec: {podSelector: {matchLabels: {app: app}}, policyTypes: [Ingress], ingress: [{ports: [{port: 80, protocol: UDP}]}]}\n"), "spec.ingress[0].ports[0].port: port 80 of the selected pods uses TCP, but this one uses UDP"},
		"protocol of a Service":       {operation("Service", "/spec/ports/0", "{name: metrics, port: 80, targetPort: http, protocol: UDP}"), "spec.ports[0].targetPort: port http of the selected pods uses TCP, but this one uses UDP"},
		"both autoscalers":            {autoscaler("Deployment", "app", "'*'"), "VerticalPodAutoscaler garden/x: spec: two autoscalers of Deployment app scale it by cpu (the other one is HorizontalPodAutoscaler app) and counteract each other"},
		"of two resources":            {autoscaler("Deployment", "app", "'*'\n      controlledResources: [memory]"), ""},
		"port of a backend":           {added("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x}\nspec: {defaultBackend: {service: {name: app, port: {number: 8081}}}}\n"), `spec.defaultBackend.service.port.number: Service "app" has no port 8081`},
		"certificate of one":          {added("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x, namespace: garden}\nspec: {tls: [{secretName: nope}], defaultBackend: {service: {name: app, port: {name: metrics}}}}\n"), `spec.tls[0].secretName: Secret "nope" is neither rendered for the cluster nor declared in Git`},
		"near no pods":                {deploymentPatch("{template: {spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: tol}}}]}}}}}"), "selects nothing: no pods rendered for the cluster have the labels app=tol"},
		"made elsewhere":              {with(containerPatch("envFrom: [{secretRef: {name: known}}]"), "../../../landscape.yaml", landscapeFile("{external: [{kind: Secret, namespace: garden, name: known}]}")), ""},
		"declared in Git":             {with(containerPatch("envFrom: [{secretRef: {name: known}}]"), "../../../k.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: known, namespace: garden}\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			catalogue := smallCatalogue(t, map[string]string{
				"garden/app/component.cue": namingApp, "garden/flow.cue": strings.ReplaceAll(appFlow, `["app"]`, `["app", "classes"]`),
				"garden/classes/component.cue": strings.ReplaceAll(component(`cue: [for n in ["important", "other"] {apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: name: n, value: 1}, {apiVersion: "monitoring.coreos.com/v1", kind: "Prometheus", metadata: {name: "garden", namespace: "garden"}, spec: ruleSelector: matchLabels: prometheus: "garden"}, for n in ["other", "single"] {`+deploymentOf+`}, `+budgetOf+`]`, ""), "bundles: app:", "bundles: classes:"),
			})
			found := CheckLandscape(catalogue, overlayLandscape(t, tt.files))
			assert.False(t, schemas.HasErrors(found), "a warning stops nothing: %v", found)
			if tt.want == "" {
				assert.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			texts := []string{}
			for _, v := range found {
				texts = append(texts, v.String())
			}
			assert.Contains(t, strings.Join(texts, "\n"), tt.want)
		})
	}
}
