// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestNullsInFreeFormParts: a null in a free-form part reaches the cluster as declared; a null that
// unsets a field is not sent.
func TestNullsInFreeFormParts(t *testing.T) {
	f := newFixture(t)
	definition := f.object(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: charts.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {plural: charts, singular: chart, kind: Chart}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              values: {x-kubernetes-preserve-unknown-fields: true}
              config: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: string}}}
              plain: {type: object, properties: {a: {type: string}, b: {type: string}}}
              labels: {type: object, additionalProperties: {type: string}}
              port: {x-kubernetes-int-or-string: true}
              free: {type: object, additionalProperties: {x-kubernetes-preserve-unknown-fields: true}}
              nullable: {type: string, nullable: true}
              items: {type: array, items: {type: object, properties: {name: {type: string}, other: {type: string}, config: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`)
	chart := func(name, spec string) *unstructured.Unstructured {
		return f.object(`{apiVersion: NS.example.com/v1, kind: Chart, metadata: {name: ` + name + `, namespace: NS, creationTimestamp: null, labels: null, annotations: {a: null}}, status: null, spec: ` + spec + `}`)
	}
	cases := map[string]struct{ declared, want string }{
		"values":   {`{values: {a: null, keep: 1, m: {x: null}, l: [null, {d: null}]}}`, `{values: {a: null, keep: 1, m: {x: null}, l: [null, {d: null}]}}`},
		"config":   {`{config: {known: null, other: null, in: {x: null}}}`, `{config: {other: null, in: {x: null}}}`},
		"plain":    {`{plain: {a: null, b: x}, labels: {a: null, b: x}, port: null}`, `{plain: {b: x}, labels: {b: x}}`},
		"fields":   {`{values: null, config: null, plain: {a: x}}`, `{plain: {a: x}}`},
		"free":     {`{free: {a: null, b: {x: null}}}`, `{free: {b: {x: null}}}`},
		"nullable": {`{nullable: null}`, `{nullable: null}`},
		"items":    {`{items: [{name: x, other: null, config: {x: null}}]}`, `{items: [{name: x, config: {x: null}}]}`},
	}
	compare := func(t *testing.T, o *unstructured.Unstructured, want string) {
		t.Helper()
		live := f.get(o)
		assert.Equal(t, chart("x", want).Object["spec"], live.Object["spec"])
		assert.NotContains(t, live.GetAnnotations(), "a")
	}
	objects := []*unstructured.Unstructured{definition}
	for name, c := range cases {
		objects = append(objects, chart("with-"+name, c.declared))
	}
	set := f.set(objects...)
	f.mustApply(set)
	for name, c := range cases {
		compare(t, chart("with-"+name, c.declared), c.want)
	}
	assert.Empty(t, f.requests(func() {
		assert.Equal(t, len(objects), f.mustApply(set).Count(Unchanged))
	}), "the definition of the set says what its nulls mean")

	// Someone else applies the definition now.
	f.inv = NewConfigMapInventory(f.c, f.ns, "without", nil)
	objects = nil
	for name, c := range cases {
		objects = append(objects, chart("after-"+name, c.declared))
	}
	set = f.set(objects...)
	set.Name += "-without"
	f.mustApply(set)
	for name, c := range cases {
		compare(t, chart("after-"+name, c.declared), c.want)
	}
	assert.Empty(t, f.requests(func() {
		assert.Equal(t, len(objects), f.mustApply(set).Count(Unchanged))
	}), "the schema is read once")
	p, err := f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
	require.NoError(t, err)
	assert.Empty(t, p.Items)
	require.NoError(t, f.resource(definition).Delete(f.ctx, definition.GetName(), metav1.DeleteOptions{}))
}

// TestNullsOfBuiltInKinds: they have no free-form part, so no schema is requested.
func TestNullsOfBuiltInKinds(t *testing.T) {
	f := newFixture(t)
	deployment := f.deployment("d", 1)
	unstructured.RemoveNestedField(deployment.Object, "spec", "replicas")
	spec := deployment.Object["spec"].(map[string]any)
	spec["replicas"], spec["strategy"] = nil, map[string]any{"rollingUpdate": nil}
	pod := spec["template"].(map[string]any)["spec"].(map[string]any)
	pod["nodeSelector"] = map[string]any{"a": nil}
	pod["containers"].([]any)[0].(map[string]any)["command"] = nil
	secret := f.object(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS, labels: {a: null}}, stringData: {a: null, b: x}}`)
	configMap := f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: NS, annotations: null}, data: {a: null, b: x}}`)
	requests := f.requests(func() { f.mustApply(f.set(deployment, secret, configMap)) })
	assert.Zero(t, requests["get"], "%v", requests)
	assert.Equal(t, map[string]any{"b": "x"}, nested(f.get(configMap), "data"))
	assert.Equal(t, map[string]any{"b": "eA=="}, nested(f.get(secret), "data"))
	assert.Equal(t, int64(1), nested(f.get(deployment), "spec", "replicas"))
}
