package operator

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/pergola-dev/pergola/hack/smallcatalogue"
)

// smallCatalogue has one component for each kind of owner, so that landscapes with a Garden, a Seed and a Shoot are rendered at once. That
// of the Garden is a Deployment, which is waited for before the ConfigMap "after" is applied.
func smallCatalogue(t *testing.T) fs.FS {
	t.Helper()
	out := smallcatalogue.New()
	flow := func(kind, nodes string) string {
		return "package flow\n\n" + kind + ": _\n\n#Node: {\n\tbundles: [...string] | *[]\n\ttask: string | *\"\"\n\tafter: [string]: string\n\ttimeout: string | *\"10m\"\n\tif: bool | *true\n}\n" +
			"flow: reconcile: nodes: [string]: #Node\nflow: delete: nodes: [string]: #Node\nflow: reconcile: nodes: {" + nodes + "}\nflow: delete: nodes: {" + nodes + "}\n"
	}
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
	for name, text := range map[string]string{
		"garden/flow.cue":            flow("garden", "slow: bundles: [\"slow\"]\nafter: {bundles: [\"after\"], after: slow: \"healthy\"}\n"),
		"garden/slow/component.cue":  component("RuntimeComponentsHealthy", "slow", "runtime", deployment),
		"garden/after/component.cue": component("RuntimeComponentsHealthy", "after", "runtime", configMap("after")),
		"seed/flow.cue":              flow("seed", "a: bundles: [\"a\"]\n"),
		"seed/a/component.cue":       component("SeedSystemComponentsHealthy", "a", "seed", configMap("a")),
		"shoot/flow.cue":             flow("shoot", "b: bundles: [\"b\"]\nreferences: bundles: [\"referenced-resources\"]\n"),
		"shoot/b/component.cue":      component("ControlPlaneHealthy", "b", "seed", configMap("b")),
	} {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}
