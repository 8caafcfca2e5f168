// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// checkedApp is a component with a Deployment, its ConfigMap and an autoscaler.
const checkedApp = `package component

component: bundles: app: {cluster: "runtime", direct: true, source: cue: [
	{apiVersion: "apps/v1", kind: "Deployment", metadata: {name: "app", namespace: "garden"}, spec: {
		replicas: 2
		selector: matchLabels: app: "app"
		template: {metadata: labels: app: "app", spec: {
			containers: [
				{name: "app", image: "i:1", env: [{name: "LEVEL", value: "info"}], resources: requests: memory: "10Mi", ports: [{containerPort: 80}]},
				{name: "proxy", image: "p:1"},
			]
			volumes: [{name: "config", configMap: name: "app"}]
		}}
	}},
	{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "app", namespace: "garden"}, data: {size: "12", mode: "on"}},
	{apiVersion: "druid.gardener.cloud/v1alpha1", kind: "Etcd", metadata: {name: "app", namespace: "garden"}, spec: {
		replicas: 1, selector: matchLabels: app: "app", labels: app: "app", etcd: {}, backup: {}
	}},
]}
`

// deploymentPatch is a strategic merge of the Deployment; its spec begins in line 5 of the
// kustomization.
func deploymentPatch(spec string) map[string]string {
	return map[string]string{"kustomization.yaml": "patches:\n- patch: |\n    {apiVersion: apps/v1, kind: Deployment, metadata: {name: app},\n    spec:\n      " + spec + "}\n"}
}

func containerPatch(container string) map[string]string {
	return deploymentPatch("{template: {spec: {containers: [{name: app, " + container + "}]}}}")
}

func operationPatch(kind, operations string) map[string]string {
	return map[string]string{"kustomization.yaml": "patches:\n- target: {kind: " + kind + "}\n  patch: |\n" + indentedBy("    ", operations)}
}

func indentedBy(spaces, text string) string {
	return spaces + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+spaces) + "\n"
}

// TestOverlayObjects: objects of an overlay are checked against their schemas and reported at their
// position.
func TestOverlayObjects(t *testing.T) {
	const place = "components/garden/app/kustomization.yaml:"
	replacement := func(field, target string) map[string]string {
		return map[string]string{"kustomization.yaml": "replacements:\n- source: {kind: ConfigMap, name: app, fieldPath: data." + field + "}\n  targets:\n  - select: {kind: Deployment}\n    fieldPaths: [\"" + target + "\"]\n    options: {create: true}\n"}
	}
	resource := func(text string) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [more.yaml]\n", "more.yaml": text}
	}
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"text for a number":        {deploymentPatch(`{replicas: "two"}`), place + `5:8: error: patches[0]: spec.replicas: must be a whole number, but is the text "two" [landscape/object]`},
		"unknown field":            {deploymentPatch("{revisionHistoryLimt: 3}"), place + `5:8: error: patches[0]: spec.revisionHistoryLimt: the field "revisionHistoryLimt" does not exist; did you mean "revisionHistoryLimit"?`},
		"field of a container":     {containerPatch("imag: x"), place + `5:51: error: patches[0]: spec.template.spec.containers[0].imag: the field "imag" does not exist; did you mean "image"?`},
		"quantity":                 {containerPatch("resources: {limits: {memory: 10 apples}}"), `spec.template.spec.containers[0].resources.limits[memory]: "10 apples" is not a quantity`},
		"value of an enumeration":  {containerPatch("imagePullPolicy: allways"), `"allways" is not supported; use "Always", "IfNotPresent" or "Never"; did you mean "Always"?`},
		"two of a name":            {containerPatch("volumeMounts: [{name: config, mountPath: /a}, {name: config, mountPath: /a}]"), "volumeMounts[1].mountPath: is already used by spec.template.spec.containers[0].volumeMounts[0]"},
		"text for a list":          {deploymentPatch("{template: {spec: {containers: app}}}"), `spec.template.spec.containers: must be a list, but is the text "app"`},
		"object for a list":        {containerPatch("ports: {containerPort: 80}"), "containers[0].ports: must be a list, but is an object"},
		"list for an object":       {containerPatch("resources: []"), "containers[0].resources: must be an object, but is a list"},
		"number for a label":       {deploymentPatch("{template: {metadata: {labels: {a: 1}}}}"), "spec.template.metadata.labels[a]: must be text, but is the number 1; put it in quotes"},
		"not yet in the release":   {containerPatch("restartPolicyRules: []"), ""},
		"too new":                  {deploymentPatch("{template: {spec: {volumes: [{name: config, emptyDir: {mode: 7}}]}}}"), `the field "mode" needs Kubernetes 1.37, but the cluster has Kubernetes 1.36`},
		"nothing inside of braces": {deploymentPatch("{template: {spec: {volumes: [{name: config, emptyDir: }]}}}"), "spec.template.spec.volumes[0].emptyDir: has no value, and Kustomize reads it as empty text"},
		"date":                     {map[string]string{"kustomization.yaml": "patches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: app}\n    data:\n      day: 2024-01-01\n"}, place + "7:12: error: patches[0]: data.day: is a date without quotes, which Kustomize turns into 2024-01-01T00:00:00Z: put it in quotes"},
		"yes":                      {map[string]string{"kustomization.yaml": "patches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: app}\n    data:\n      mode: yes\n"}, place + "7:7: error: patches[0]: data[mode]: must be text, but is true; put it in quotes"},
		"yes by an operation":      {operationPatch("ConfigMap", "- {op: add, path: /data/mode, value: yes}"), place + "4:42: error: patches[0]: data[mode]: must be text, but is true; put it in quotes"},
		"number by an operation":   {operationPatch("ConfigMap", "- op: add\n  path: /data/a\n  value: 1"), place + "6:14: error: patches[0]: data[a]: must be text, but is the number 1; put it in quotes"},
		"field by an operation":    {operationPatch("Deployment", "- op: add\n  path: /spec/replcas\n  value: 1"), place + `5:13: error: patches[0]: spec.replcas: the field "replcas" does not exist; did you mean "replicas"?`},
		"item by an operation":     {operationPatch("Deployment", "- op: add\n  path: /spec/template/spec/containers/-\n  value: {name: more, imag: x}"), place + `6:27: error: patches[0]: spec.template.spec.containers[-].imag: the field "imag" does not exist; did you mean "image"?`},
		"replace of nothing":       {operationPatch("Deployment", "- op: replace\n  path: /spec/replcas\n  value: 1"), place + `5:13: error: patches[0]: operation 0 (replace): Deployment app has no "replcas" at /spec; did you mean "replicas"?; use add for a field that is not set [landscape/overlay-path]`},
		"remove of nothing":        {operationPatch("Deployment", "- op: remove\n  path: /spec/template/spec/containers/5"), place + `5:13: error: patches[0]: operation 0 (remove): Deployment app has 2 items at /spec/template/spec/containers, and no item "5"`},
		"add an annotation":        {operationPatch("Deployment", "- {op: add, path: /metadata/annotations/a~1b, value: x}"), ""},
		"add below nothing":        {operationPatch("Deployment", "- op: add\n  path: /spec/strategy/type\n  value: Recreate"), `operation 0 (add): Deployment app has no "strategy" at /spec; it has replicas, selector, template; add its parent first`},
		"test of another value":    {operationPatch("Deployment", "- op: test\n  path: /spec/replicas\n  value: 7"), "operation 0 (test): the value at /spec/replicas of Deployment app differs"},
		"test of nothing":          {operationPatch("Deployment", "- op: test\n  path: /spec/paused\n  value: true"), `operation 0 (test): Deployment app has no "paused" at /spec`},
		"move from nothing":        {operationPatch("Deployment", "- op: move\n  from: /spec/replcas\n  path: /spec/paused"), place + `5:13: error: patches[0]: operation 0 (move): Deployment app has no "replcas" at /spec; did you mean "replicas"?`},
		"the second operation":     {operationPatch("Deployment", "- op: add\n  path: /spec/paused\n  value: false\n- op: replace\n  path: /spec/paused\n  value: true\n- op: remove\n  path: /spec/pausd"), place + `11:13: error: patches[0]: operation 2 (remove): Deployment app has no "pausd" at /spec; did you mean "paused"?`},
		"text by a replacement":    {replacement("mode", "spec.replicas"), place + "2:3: error: replacements[0]: gives a field of Deployment app a value of a different type than before (the value is not shown) [landscape/overlay]"},
		"number by a replacement":  {replacement("size", "metadata.labels.x"), place + "2:3: error: Deployment garden/app: metadata.labels[x]: must be text, but is the number 12; Kustomize copies values without their quotes into fields that it creates: set this one with a patch [landscape/object]"},
		"replacement, no field":    {replacement("mode", "spec.mode"), place + `2:3: error: Deployment garden/app: spec.mode: the field "mode" does not exist`},
		"definition":               {map[string]string{"kustomization.yaml": "patches:\n- patch: |\n    apiVersion: druid.gardener.cloud/v1alpha1\n    kind: Etcd\n    metadata: {name: app}\n    spec:\n      replicsa: 3\n"}, place + `7:7: error: patches[0]: spec.replicsa: the field "replicsa" does not exist; did you mean "replicas"?`},
		"type of a definition":     {operationPatch("Etcd", "- op: replace\n  path: /spec/replicas\n  value: three"), place + `6:14: error: patches[0]: spec.replicas: must be a whole number, but is the text "three"`},
		"added object":             {resource("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndatta: {}\n"), `components/garden/app/more.yaml:4:1: error: datta: the field "datta" does not exist; did you mean "data"?`},
		"second added object":      {resource("# one\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: z}\nspec:\n  paralelism: 1\n"), `components/garden/app/more.yaml:11:3: error: spec.paralelism: the field "paralelism" does not exist; did you mean "parallelism"?`},
		"second document in JSON":  {resource(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}` + "\n---\n" + `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"z"},"data":{"a":1}}` + "\n"), "components/garden/app/more.yaml:3:71: error: data[a]: must be text, but is the number 1"},
		"kind that there is not":   {resource("apiVersion: apps/v1\nkind: Deploymnt\nmetadata: {name: x}\n"), "components/garden/app/more.yaml:2:7: error: kind: there is no kind Deploymnt of apps/v1; did you mean Deployment?"},
		"required by a definition": {resource("apiVersion: extensions.gardener.cloud/v1alpha1\nkind: Extension\nmetadata: {name: x}\nspec: {}\n"), "components/garden/app/more.yaml:4:1: error: Extension x: spec.type: must be set [landscape/object]"},
		"no image":                 {operationPatch("Deployment", "- op: add\n  path: /spec/template/spec/containers/-\n  value: {name: x}"), place + "5:13: error: Deployment garden/app: spec.template.spec.containers[2].image: must be set [landscape/object]"},
		"selector":                 {operationPatch("Deployment", "- op: replace\n  path: /spec/template/metadata/labels/app\n  value: other"), place + "4:5: error: Deployment garden/app: spec.template.metadata.labels: `selector` does not match template `labels` [landscape/object]"},
		"negative":                 {deploymentPatch("{replicas: -1}"), place + "5:8: error: Deployment garden/app: spec.replicas: -1: must be greater than or equal to 0"},
		"label for all":            {map[string]string{"kustomization.yaml": "labels:\n- pairs: {x: a b}\n"}, place + `1:1: error: Deployment garden/app: metadata.labels: "a b": a valid label must be`},
		"annotation for all":       {map[string]string{"kustomization.yaml": "commonAnnotations: {a/b/c: x}\n"}, place + `1:1: error: Deployment garden/app: metadata.annotations: "a/b/c": a valid label key must`},
		"generated":                {map[string]string{"kustomization.yaml": "configMapGenerator:\n- {name: A_B, namespace: garden, literals: [a=b]}\n"}, place + "1:1: error: ConfigMap garden/A_B-4h2mbtbbt6: metadata.name: "},
		"no verbs":                 {resource("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: x}\nrules:\n- apiGroups: ['']\n  resources: [pods]\n"), "components/garden/app/more.yaml:5:3: error: Role x: rules[0].verbs: must be set: verbs must contain at least one value"},
		"name of a custom kind":    {resource("apiVersion: druid.gardener.cloud/v1alpha1\nkind: Etcd\nmetadata: {name: A_b}\nspec: {replicas: 1, selector: {matchLabels: {a: b}}, labels: {a: b}, etcd: {}, backup: {}}\n"), `components/garden/app/more.yaml:3:12: error: Etcd A_b: metadata.name: "A_b": a lowercase RFC 1123 subdomain must`},
		"rule about its kind":      {resource("apiVersion: extensions.gardener.cloud/v1alpha1\nkind: DNSRecord\nmetadata: {name: x}\nspec:\n  type: local\n  secretRef: {name: a, namespace: garden}\n  name: a.example.org\n  recordType: A\n  values: [host.example.org]\n"), `components/garden/app/more.yaml:9:12: error: DNSRecord x: spec.values[0]: `},
		"rule, value not known":    {resource("apiVersion: extensions.gardener.cloud/v1alpha1\nkind: DNSRecord\nmetadata: {name: x}\nspec:\n  type: local\n  secretRef: {name: a, namespace: garden}\n  name: a.example.org\n  recordType: A\n  values: [address-of-x-XXXXXXXX]\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"), ""},
		"secret value":             {resource("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {p: 4711}\n"), "components/garden/app/more.yaml:4:14: error: stringData[p]: must be text, but is a number"},
		"unknown to all":           {resource("apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: x, namespace: garden}\nspec: {a: 1}\n"), ""},
		"patch of a nested component": {map[string]string{"kustomization.yaml": "components: [more]\n",
			"more/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- path: p.yaml\n", "more/p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\nspec:\n  replicas: two\n"},
			`components/garden/app/more/p.yaml:5:3: error: patches[0]: spec.replicas: must be a whole number, but is the text "two"`},
		"after another patch": {map[string]string{"kustomization.yaml": "patches:\n- path: p.yaml\n- target: {kind: Deployment}\n  patch: '[{op: replace, path: /spec/pausd, value: true}]'\n", "p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\nspec:\n  paused: false\n"},
			`operation 0 (replace): Deployment app has no "pausd" at /spec; did you mean "paused"?`},
		"what another patch adds": {map[string]string{"kustomization.yaml": "patches:\n- path: p.yaml\n- target: {kind: Deployment}\n  patch: '[{op: replace, path: /spec/paused, value: true}]'\n", "p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\nspec:\n  paused: false\n"}, ""},
		"written twice":           {map[string]string{"kustomization.yaml": "patches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: app}\n    data:\n      a: b\n    data:\n      c: d\n"}, place + `8:5: error: patches[0]: data: the field "data" is written twice`},
	} {
		t.Run(name, func(t *testing.T) {
			catalogue := smallCatalogue(t, map[string]string{"garden/app/component.cue": checkedApp, "garden/flow.cue": appFlow})
			l := overlayLandscape(t, tt.files)
			var found []string
			for _, v := range CheckLandscape(catalogue, l) {
				found = append(found, v.String())
			}
			if tt.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1, "one mistake is one finding")
			assert.Contains(t, found[0], tt.want)
			assert.NotContains(t, found[0], "4711")
			_, err := All(l, catalogue, nil)
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid, "nothing is rendered")
		})
	}
}

// TestOverlayItems: a strategic merge that adds an item beside others of the component is a warning
// with their names.
func TestOverlayItems(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"container":          {deploymentPatch("{template: {spec: {containers: [{name: ap, image: x}]}}}"), `5:46: warning: patches[0]: spec.template.spec.containers[0].name: adds an item to spec.template.spec.containers: Deployment app has no "ap" there; it has app, proxy; did you mean "app"? To add it on purpose, use an operation add with the path /spec/template/spec/containers/- [landscape/overlay-item]`},
		"variable":           {containerPatch("env: [{name: LEVL, value: debug}]"), `Deployment app has no "LEVL" there; it has LEVEL; did you mean "LEVEL"?`},
		"volume":             {deploymentPatch("{template: {spec: {containers: [{name: app, volumeMounts: [{name: confg, mountPath: /y}]}], volumes: [{name: confg, emptyDir: {}}]}}}"), `Deployment app has no "confg" there; it has config; did you mean "config"?`},
		"port":               {containerPatch("ports: [{containerPort: 8080}]"), `adds an item to spec.template.spec.containers[0].ports: Deployment app has no "8080" there; it has 80.`},
		"deletes nothing":    {deploymentPatch("{template: {spec: {containers: [{name: prxy, $patch: delete}]}}, replicas: 3}"), `deletes nothing: Deployment app has no "prxy" in spec.template.spec.containers; it has app, proxy; did you mean "proxy"?`},
		"none like it":       {deploymentPatch("{template: {spec: {containers: [{name: sidecar, image: x}]}}}"), `has no "sidecar" there; it has app, proxy. To add`},
		"known":              {containerPatch("image: x"), ""},
		"a list of its own":  {containerPatch("volumeMounts: [{name: config, mountPath: /x}]"), ""},
		"by an operation":    {operationPatch("Deployment", "- op: add\n  path: /spec/template/spec/containers/-\n  value: {name: more, image: x}"), ""},
		"by an earlier one":  {map[string]string{"kustomization.yaml": "patches:\n- target: {kind: Deployment}\n  patch: '[{op: add, path: /spec/template/spec/containers/-, value: {name: more, image: x}}]'\n- patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {template: {spec: {containers: [{name: more, image: z}]}}}}'\n"}, ""},
		"an atomic list":     {deploymentPatch("{template: {spec: {tolerations: [{key: a, operator: Exists}]}}}"), ""},
		"list of definition": {operationPatch("Etcd", "- {op: replace, path: /spec/replicas, value: 3}"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			catalogue := smallCatalogue(t, map[string]string{"garden/app/component.cue": checkedApp, "garden/flow.cue": appFlow})
			l := overlayLandscape(t, tt.files)
			found := CheckLandscape(catalogue, l)
			assert.False(t, schemas.HasErrors(found), "a warning stops nothing")
			if tt.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0].String(), tt.want)
		})
	}
}

// TestRenderedObjectsOfTheCatalogue: objects of each engine are checked, even without an overlay.
func TestRenderedObjectsOfTheCatalogue(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"cue":       {"garden/app/component.cue": component(`cue: [{apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", datta: {}}]`, "")},
		"helm":      {"garden/app/component.cue": component(`helm: chart: "chart"`, ""), "garden/app/chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "garden/app/chart/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndatta: {}\n"},
		"kustomize": {"garden/app/component.cue": component(`kustomize: "k"`, ""), "garden/app/k/kustomization.yaml": "resources: [a.yaml]\n", "garden/app/k/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndatta: {}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(gardenInput(), Options{Catalogue: smallCatalogue(t, files)})
			require.ErrorContains(t, err, `ConfigMap garden/a: datta: the field "datta" does not exist; did you mean "data"?`)
			assert.ErrorContains(t, err, "components/garden/app/")
		})
	}
}
