// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

// waitingFlow has app, a node after it that only joins others, a skipped step, and user, which
// comes after WAITS.
const waitingFlow = `package flow

flow: reconcile: nodes: {
	app: {apply: ["app"]}
	point: after: app: "healthy"
	skipped: {after: app: "healthy", if: false}
	user: {apply: ["user"], after: {WAITS}}
}
flow: delete: nodes: all: remove: ["app", "user"]
`

const userDeployment = `{apiVersion: "apps/v1", kind: "Deployment", metadata: {name: "user", namespace: "garden"}, spec: {selector: matchLabels: app: "user", template: {metadata: labels: {app: "user", LABELS}, spec: {containers: [{name: "a", image: "i"}], SPEC}}}}`

// cueObject is an object in CUE.
func cueObject(api, kind, name, rest string) string {
	return `{apiVersion: "` + api + `", kind: "` + kind + `", metadata: {name: "` + name + `"` + rest + `}`
}

// kubeconfigOf is a Secret with a kubeconfig for a server.
func kubeconfigOf(server string) string {
	text := "apiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster: {server: '" + server + "'}\n"
	return cueObject("v1", "Secret", "a", `, namespace: "garden"}, data: "a.yaml": "`+base64.StdEncoding.EncodeToString([]byte(text))+`"`)
}

// TestDisabledComponents: the users of a disabled component and their reasons are reported.
func TestDisabledComponents(t *testing.T) {
	pod := func(labels, spec string) string {
		return strings.NewReplacer("LABELS", labels, "SPEC", spec).Replace(userDeployment)
	}
	const inGarden = `, namespace: "garden"}`
	service := cueObject("v1", "Service", "server", inGarden+`, spec: ports: [{port: 443}]`)
	definition := cueObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.org", `}, spec: {group: "example.org", scope: "Namespaced", names: {kind: "Thing", plural: "things"}, versions: [{name: "v1", served: true, storage: true, schema: openAPIV3Schema: {type: "object", "x-kubernetes-preserve-unknown-fields": true}}]}`)
	secret := cueObject("v1", "Secret", "shared", inGarden)
	calls := pod(`"networking.resources.gardener.cloud/to-server-tcp-443": "allowed"`, "")
	for name, test := range map[string]struct {
		app, user, waits, external, more string
		want                             string
	}{
		"a Secret that pods mount": {app: secret, user: pod("", `volumes: [{name: "a", secret: secretName: "shared"}]`), want: "error: Secret garden/shared by garden/user"},
		"a ConfigMap of the environment": {app: cueObject("v1", "ConfigMap", "shared", inGarden), user: pod("", `containers: [{envFrom: [{configMapRef: name: "shared"}]}]`),
			want: "error: ConfigMap garden/shared by garden/user"},
		"one of another namespace": {app: cueObject("v1", "Secret", "shared", `, namespace: "other"}`), user: pod("", `volumes: [{name: "a", secret: secretName: "shared"}]`)},
		"an account":               {app: cueObject("v1", "ServiceAccount", "shared", inGarden), user: pod("", `serviceAccountName: "shared"`), want: "error: ServiceAccount garden/shared by garden/user"},
		"a priority":               {app: cueObject("scheduling.k8s.io/v1", "PriorityClass", "high", "}, value: 1"), user: pod("", `priorityClassName: "high"`), want: "error: PriorityClass high by garden/user"},
		"a kind":                   {app: definition, user: cueObject("example.org/v1", "Thing", "a", inGarden), want: "error: CustomResourceDefinition things.example.org by garden/user"},
		"a kind of another group":  {app: definition, user: cueObject("example.com/v1", "Thing", "a", inGarden)},
		"a namespace":              {app: cueObject("v1", "Namespace", "other", "}"), user: cueObject("v1", "ConfigMap", "a", `, namespace: "other"}`), want: "error: Namespace other by garden/user"},
		"the namespace of the operator is there before": {app: cueObject("v1", "Namespace", "garden", "}"), user: cueObject("v1", "ConfigMap", "a", inGarden)},
		"who answers webhooks":                          {app: strings.ReplaceAll(pod("", ""), `"user"`, `"server"`), user: cueObject("v1", "ConfigMap", "a", inGarden), more: `, servedBy: "server"`, want: "error: Deployment garden/server by garden/user"},
		"an address":                                    {app: service, user: cueObject("v1", "ConfigMap", "a", inGarden+`, data: at: "address-of-server-XXXXXXXX"`), want: "error: Service garden/server by garden/user"},
		"the address of a gateway": {app: cueObject("v1", "Service", "gateway-internal", `, namespace: "istio"}, spec: ports: [{port: 443}]`) + ", " + cueObject("v1", "Service", "gateway", `, namespace: "istio"}, spec: ports: [{port: 443}]`),
			user: cueObject("v1", "ConfigMap", "a", inGarden+`, data: at: "address-of-istio-XXXXXXXX"`), want: "error: Service istio/gateway by garden/user"},
		"a server that a kubeconfig names":         {app: service, user: kubeconfigOf("https://server/ask"), want: "error: Service garden/server by garden/user"},
		"one that is named with its namespace":     {app: service, user: kubeconfigOf("https://server.garden.svc.cluster.local:443"), want: "error: Service garden/server by garden/user"},
		"one of another namespace that is named":   {app: service, user: kubeconfigOf("https://server.other/ask")},
		"a server elsewhere":                       {app: service, user: kubeconfigOf("https://server.example.org/ask")},
		"what is no kubeconfig":                    {app: service, user: cueObject("v1", "ConfigMap", "a", inGarden+`, data: "a.yaml": "server: https://server/ask"`)},
		"a server that is waited for and called":   {app: service, user: calls, waits: `point: "healthy"`, want: "error: Service garden/server by garden/user"},
		"a server that is called":                  {app: service, user: calls, want: "warning: pods connect to its Services: Service garden/server by garden/user"},
		"a server that is called in another place": {app: cueObject("v1", "Service", "server", `, namespace: "other"}, spec: ports: [{port: 443}]`), user: calls},
		"what is waited for":                       {app: secret, user: cueObject("v1", "ConfigMap", "a", inGarden), waits: `app: "rolledOut"`, want: "warning: components that wait until it is healthy: garden/user"},
		"what comes before":                        {app: secret, user: cueObject("v1", "ConfigMap", "a", inGarden), waits: `app: "applied"`},
		"what is waited for by nobody":             {app: secret, user: cueObject("v1", "ConfigMap", "a", inGarden), waits: `skipped: "healthy"`},
		"who works on a kind": {app: cueObject("rbac.authorization.k8s.io/v1", "ClusterRole", "app", `}, rules: [{apiGroups: ["example.org"], resources: ["things/status"], verbs: ["patch"]}]`),
			user: definition + ", " + cueObject("example.org/v1", "Thing", "a", inGarden), want: "warning: it reconciles objects of others: Thing by garden/user"},
		"who reads a kind": {app: cueObject("rbac.authorization.k8s.io/v1", "ClusterRole", "app", `}, rules: [{apiGroups: ["example.org"], resources: ["things"], verbs: ["list"]}]`),
			user: definition + ", " + cueObject("example.org/v1", "Thing", "a", inGarden)},
		"what others have, too":            {app: secret, user: secret + ", " + pod("", `volumes: [{name: "a", secret: secretName: "shared"}]`)},
		"what exists outside":              {app: secret, user: pod("", `volumes: [{name: "a", secret: secretName: "shared"}]`), external: "{kind: Secret, namespace: garden, name: sha*}"},
		"what exists outside by this name": {app: secret, user: pod("", `volumes: [{name: "a", secret: secretName: "shared"}]`), external: "{kind: ConfigMap, namespace: garden, name: shared}", want: "error: Secret garden/shared by garden/user"},
	} {
		t.Run(name, func(t *testing.T) {
			component := func(bundle, objects, more string) string {
				return "package component\n\ncomponent: bundles: " + bundle + `: {cluster: "runtime", direct: true, source: cue: [` + objects + "]" + more + "}\n"
			}
			files := map[string]string{
				"garden/flow.cue":           strings.Replace(waitingFlow, "WAITS", test.waits, 1),
				"garden/app/component.cue":  component("app", test.app, ""),
				"garden/user/component.cue": component("user", test.user, test.more),
			}
			for _, on := range []string{"false", "true"} {
				l := loadLandscape(t, map[string]string{"landscape.yaml": landscapeFile("\n  external: [" + test.external + "]\n  components:\n    garden:\n      app: {enabled: " + on + "}"), "g.yaml": gardenYAML})
				got := []string{}
				for _, v := range CheckLandscape(smallCatalogue(t, files), l) {
					got = append(got, v.String())
				}
				if on == "true" || test.want == "" {
					assert.Empty(t, got)
					continue
				}
				severity, what, _ := strings.Cut(test.want, ": ")
				require.Len(t, got, 1)
				assert.True(t, strings.HasPrefix(got[0], "landscape.yaml:9:22: "+severity+": Landscape test: spec.components.garden.app.enabled: garden/app is off"), got[0])
				assert.Contains(t, got[0], what+";")
				assert.Contains(t, got[0], map[string]string{"error": "[landscape/component-needed]", "warning": "[landscape/component-awaited]"}[severity])
			}
		})
	}
}

// TestDisabledComponentsOfTheCatalogue checks the needs of the real components.
func TestDisabledComponentsOfTheCatalogue(t *testing.T) {
	config, err := os.ReadFile("../landscapes/local/landscape.yaml")
	require.NoError(t, err)
	found := func(external string, names ...string) (errors, warnings string) {
		owner, off := "garden", ""
		for _, name := range names {
			if of, rest, found := strings.Cut(name, "/"); found {
				owner, name = of, rest
			}
			off += "\n      " + name + ": {enabled: false}"
		}
		text := strings.Replace(string(config), "spec:\n", "spec:\n  external: ["+external+"]\n  components:\n    "+owner+":"+off+"\n", 1)
		require.NotEqual(t, string(config), text)
		l := extendedLandscape(t, map[string]string{"landscape.yaml": text})
		for _, v := range CheckLandscape(components.FS, l) {
			switch v.Rule {
			case ruleComponentNeeded:
				errors += v.Message
			case ruleComponentAwaited:
				warnings += v.Message
			default:
				t.Error(v)
			}
		}
		return errors, warnings
	}
	errors, warnings := found("", "etcd-main", "prometheus-operator")
	assert.Contains(t, errors, "garden/etcd-main is off, but its objects are needed: Service garden/virtual-garden-etcd-main-client by garden/kube-apiserver;")
	assert.Contains(t, warnings, "garden/prometheus-operator is off: it reconciles objects of others: Alertmanager by garden/alertmanager-garden; Prometheus by garden/prometheus-garden, garden/prometheus-longterm;")
	assert.NotContains(t, errors+warnings, "gardener-apiserver", "which is not there")

	errors, _ = found("", "istio")
	assert.Contains(t, errors, "Service virtual-garden-istio-ingress/istio-ingressgateway by garden/dns-records")

	errors, _ = found("{kind: Service, namespace: garden, name: virtual-garden-etcd-*-client}", "etcd-main", "etcd-events")
	assert.Empty(t, errors, "somebody else has it")

	errors, warnings = found("", "dns-records", "plutono", "nginx-ingress")
	assert.Empty(t, errors+warnings, "nobody needs it")

	errors, _ = found("", "seed/system")
	assert.Contains(t, errors, "seed/system is off, but its objects are needed: PriorityClass gardener-system-800 by seed/etcd-druid;")

	errors, warnings = found("", "shoot/kube-apiserver")
	assert.Contains(t, errors, "Service shoot--local--local/kube-apiserver by shoot/kube-controller-manager, shoot/kube-scheduler;")
	assert.Contains(t, warnings, "components that wait until it is healthy: shoot/controlplane")
}
