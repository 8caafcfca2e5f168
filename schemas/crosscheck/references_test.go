// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// objectWithValue returns an object with one value at a path such as
// spec.dns.providers[].secretName.
func objectWithValue(path []string, value any) map[string]any {
	name, isList := strings.CutSuffix(path[0], "[]")
	inner := value
	if len(path) > 1 {
		inner = objectWithValue(path[1:], value)
	}
	if isList {
		inner = []any{inner}
	}
	return map[string]any{name: inner}
}

// TestReferenceFields checks that each field of the table exists in the API, fails without its
// target, and accepts a declared or external target.
func TestReferenceFields(t *testing.T) {
	kinds, err := schemas.StructuralKinds()
	require.NoError(t, err)
	find := func(r referenceField) *structure.Kind {
		first, _, _ := strings.Cut(r.path, ".")
		for _, k := range kinds {
			if structure.RulesName(k.GVK) == r.referrerKind && k.Root.Properties[strings.TrimSuffix(first, "[]")] != nil {
				return k // any version
			}
		}
		return nil
	}
	for _, r := range referenceFields() {
		t.Run(r.referrerKind+" "+r.path, func(t *testing.T) {
			kind := find(r)
			require.NotNil(t, kind)
			node := kind.Root
			for _, name := range strings.Split(r.path, ".") {
				name, isList := strings.CutSuffix(name, "[]")
				require.Contains(t, node.Properties, name, "the field of the API")
				node = node.Properties[name]
				if isList {
					node = node.Items
				}
			}
			var value any = "thing"
			field := strings.ReplaceAll(r.path, "[]", "[0]")
			if len(node.Properties) > 0 {
				value = map[string]any{"name": "thing"}
				field += ".name"
			}
			from := objectWithValue(strings.Split(r.path, "."), value)
			from["apiVersion"], from["kind"] = kind.GVK.GroupVersion().String(), kind.GVK.Kind
			from["metadata"] = map[string]any{"name": "from", "namespace": "ns"}
			namespace := map[string]string{namespaceGarden: "garden", namespaceOfReferrer: "ns", namespaceAsWritten: "ns"}[r.namespace]
			to := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "thing"}}}
			to.SetGroupVersionKind(schema.GroupVersionKind{Group: r.targetKind.Group, Version: "v1", Kind: r.targetKind.Kind})
			to.SetNamespace(namespace)

			rule := strings.ToLower(r.referrerKind) + "/references"
			found := func(opts Options, objects ...*unstructured.Unstructured) []string {
				inputs := []schemas.Input{{Object: &unstructured.Unstructured{Object: from}}}
				for _, o := range objects {
					inputs = append(inputs, schemas.Input{Object: o})
				}
				var out []string
				for _, v := range Check(inputs, opts) {
					if v.Rule == rule {
						out = append(out, v.Field+" "+string(v.Type))
					}
				}
				return out
			}
			assert.Equal(t, []string{field + " Invalid"}, found(Options{}))
			assert.Empty(t, found(Options{}, to))
			assert.Empty(t, found(Options{External: []External{{Kind: r.targetKind.Kind, Namespace: namespace, Name: "th*"}}}))
		})
	}
}

// TestReferencesToOtherCluster checks that a Seed's reference fails if the Garden refers to the
// same Secret, which is then in the runtime cluster only.
func TestReferencesToOtherCluster(t *testing.T) {
	object := func(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	garden := object("operator.gardener.cloud/v1alpha1", "Garden", "", "g", map[string]any{"dns": map[string]any{"providers": []any{map[string]any{"secretRef": map[string]any{"name": "dns"}}}}})
	seed := func(name, namespace string) *unstructured.Unstructured {
		return object("core.gardener.cloud/v1beta1", "Seed", "", "s", map[string]any{"backup": map[string]any{"credentialsRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "name": name, "namespace": namespace}}})
	}
	secret := func(name, namespace string) *unstructured.Unstructured {
		return object("v1", "Secret", namespace, name, nil)
	}
	saying := func(o *unstructured.Unstructured, cluster string) *unstructured.Unstructured {
		o.SetAnnotations(map[string]string{clusterAnnotation: cluster})
		return o
	}
	for name, test := range map[string]struct {
		objects []*unstructured.Unstructured
		want    string
	}{
		"both name it":         {[]*unstructured.Unstructured{garden, seed("dns", "garden"), secret("dns", "garden")}, "Secret garden/dns goes to the runtime cluster, because Garden g refers to it; declare another one with another name for the virtual garden"},
		"each its own":         {[]*unstructured.Unstructured{garden, seed("other", "garden"), secret("dns", "garden"), secret("other", "garden")}, ""},
		"one of the same name": {[]*unstructured.Unstructured{garden, seed("dns", "elsewhere"), secret("dns", "garden"), secret("dns", "elsewhere")}, ""},
		"its annotation says where": {[]*unstructured.Unstructured{garden, seed("dns", "garden"), saying(secret("dns", "garden"), "virtual")},
			"Secret garden/dns goes to the virtual cluster by its annotation landscape.pergola.dev/cluster, but is read from the runtime one; remove the annotation"},
		"its annotation moves it":    {[]*unstructured.Unstructured{seed("dns", "garden"), saying(secret("dns", "garden"), "runtime")}, "Secret garden/dns goes to the runtime cluster by its annotation"},
		"in a namespace of its own":  {[]*unstructured.Unstructured{seed("dns", "elsewhere"), saying(secret("dns", "elsewhere"), "runtime")}, "Secret elsewhere/dns goes to the runtime cluster"},
		"where it goes anyway":       {[]*unstructured.Unstructured{seed("dns", "garden"), saying(secret("dns", "garden"), "virtual")}, ""},
		"a value that counts not":    {[]*unstructured.Unstructured{seed("dns", "garden"), saying(secret("dns", "garden"), "elsewhere")}, ""},
		"no Garden in the landscape": {[]*unstructured.Unstructured{seed("dns", "garden"), secret("dns", "garden")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var inputs []schemas.Input
			for _, o := range test.objects {
				inputs = append(inputs, schemas.Input{Object: o})
			}
			var found []string
			for _, v := range Check(inputs, Options{}) {
				if v.Rule == "seed/references" || v.Rule == "garden/references" {
					assert.Contains(t, []string{"spec.backup.credentialsRef.name", "spec.dns.providers[0].secretRef.name"}, v.Field)
					found = append(found, v.Message)
				}
			}
			if test.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0], test.want)
		})
	}
}

// TestSecretKeys checks that Secrets need the keys that are mounted.
func TestSecretKeys(t *testing.T) {
	const kube = "spec: {virtualCluster: {kubernetes: {kubeAPIServer: {"
	for name, test := range map[string]struct{ garden, secret, want string }{
		"the key":           {kube + "auditWebhook: {kubeconfigSecretName: s}}}}}", "stringData: {kubeconfig: a}", ""},
		"another key":       {kube + "auditWebhook: {kubeconfigSecretName: s}}}}}", "stringData: {zone: a}", `spec.virtualCluster.kubernetes.kubeAPIServer.auditWebhook.kubeconfigSecretName: Secret garden/s has no key "kubeconfig", which must exist; its keys are zone`},
		"one of two":        {kube + "sni: {secretName: s, domainPatterns: [a]}}}}}", "data: {tls.crt: YQ==}", `has no key "tls.key", which must exist; its keys are tls.crt`},
		"both":              {kube + "sni: {secretName: s, domainPatterns: [a]}}}}}", "data: {tls.crt: YQ==, tls.key: YQ==}", ""},
		"filled elsewhere":  {kube + "sni: {secretName: s, domainPatterns: [a]}}}}}", "type: Opaque", ""},
		"a webhook":         {kube + "authentication: {webhook: {kubeconfigSecretName: s}}}}}}", "stringData: {config: a}", `authentication.webhook.kubeconfigSecretName: Secret garden/s has no key "kubeconfig"`},
		"keys do not count": {"spec: {dns: {providers: [{name: a, type: b, secretRef: {name: s}}]}}", "stringData: {anything: a}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var inputs []schemas.Input
			for _, text := range []string{"{apiVersion: operator.gardener.cloud/v1alpha1, kind: Garden, metadata: {name: g}, " + test.garden + "}", "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: garden}, " + test.secret + "}"} {
				o := &unstructured.Unstructured{}
				require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
				inputs = append(inputs, schemas.Input{Object: o})
			}
			var found []string
			for _, v := range Check(inputs, Options{}) {
				if v.Rule == "garden/references" {
					found = append(found, v.Field+": "+v.Message)
				}
			}
			if test.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0], test.want)
		})
	}
}
