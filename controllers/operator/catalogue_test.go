// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/pergola-dev/pergola/hack/smallcatalogue"
)

// smallCatalogue has one component for each kind of owner, so that landscapes with a Garden, a Seed
// and a Shoot render fast. The Garden's component is a Deployment that has to be healthy before the
// ConfigMap "after" is applied.
func smallCatalogue(t *testing.T) fs.FS {
	t.Helper()
	out := smallcatalogue.New()
	component := func(condition, name, cluster, object string) string {
		return "package component\n\ncomponent: {\n\tcondition: \"" + condition + "\"\n\tsecrets: ca: {kind: \"ca\", commonName: \"test\"}\n\tbundles: \"" + name + "\": {cluster: \"" + cluster + "\", direct: true, source: cue: [" + object + "]}\n}\n"
	}
	configMap := func(name string) string {
		return "{apiVersion: \"v1\", kind: \"ConfigMap\", metadata: {name: \"" + name + "\", namespace: \"garden\"}, data: {x: \"y\"}}"
	}
	const deployment = `{
		apiVersion: "apps/v1"
		kind: "Deployment"
		metadata: {name: "slow", namespace: "garden"}
		spec: {
			replicas: 1
			selector: matchLabels: app: "slow"
			template: {
				metadata: labels: app: "slow"
				spec: containers: [{name: "slow", image: "registry.example.org/slow:v1"}]
			}
		}
	}`
	out["garden/flow.cue"] = smallcatalogue.Flow("garden", `slow: apply: ["slow"], after: {apply: ["after"], after: slow: "healthy"}`, `unused: await: "unused", all: remove: ["slow", "after"]`)
	out["seed/flow.cue"] = smallcatalogue.Flow("seed", `a: apply: ["a"]`, `a: remove: ["a"]`)
	out["shoot/flow.cue"] = smallcatalogue.Flow("shoot", `b: apply: ["b"], references: apply: ["referenced-resources"]`, `all: remove: ["b", "referenced-resources"]`)
	for name, text := range map[string]string{
		"garden/slow/component.cue":  component("RuntimeComponentsHealthy", "slow", "runtime", deployment),
		"garden/after/component.cue": component("RuntimeComponentsHealthy", "after", "runtime", configMap("after")),
		"seed/a/component.cue":       component("SeedSystemComponentsHealthy", "a", "seed", configMap("a")),
		"shoot/b/component.cue":      component("ControlPlaneHealthy", "b", "seed", configMap("b")),
	} {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}
