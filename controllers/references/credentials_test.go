// SPDX-License-Identifier: Apache-2.0

package references

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// shootInput returns a Shoot with workers unless spec says otherwise.
func shootInput(t *testing.T, spec string) render.Input {
	t.Helper()
	return render.Input{Owner: shoot, Objects: map[string]map[string]any{"shoot": object(t, "{kind: Shoot, spec: "+spec+"}").Object}}
}

const workers = "provider: {workers: [{name: a}]}"

// storedObjects returns a reader of objects by kind, namespace and name.
func storedObjects(t *testing.T, texts ...string) func(apply.Ref) (*unstructured.Unstructured, error) {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, text := range texts {
		o := object(t, text)
		all[o.GetAPIVersion()+" "+o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o
	}
	return func(ref apply.Ref) (*unstructured.Unstructured, error) {
		return all[ref.APIVersion+" "+ref.Kind+" "+ref.Namespace+"/"+ref.Name], nil
	}
}

// TestCredentials checks that a binding leads to a Secret, or that the problem names the binding,
// its reference and the remedy.
func TestCredentials(t *testing.T) {
	const (
		own       = "{apiVersion: v1, kind: Secret, metadata: {name: account, namespace: garden-local}, data: {key: c2VjcmV0}}"
		others    = "{apiVersion: v1, kind: Secret, metadata: {name: account, namespace: garden-other}, data: {key: c2VjcmV0}}"
		byBinding = "{credentialsBindingName: b, " + workers + "}"
	)
	binding := func(ref string) string {
		return "{apiVersion: security.gardener.cloud/v1alpha1, kind: CredentialsBinding, metadata: {name: b, namespace: garden-local}, credentialsRef: " + ref + "}"
	}
	const secretBinding = "{apiVersion: core.gardener.cloud/v1beta1, kind: SecretBinding, metadata: {name: b, namespace: garden-local}, secretRef: {name: account}}"
	for name, c := range map[string]struct {
		spec       string
		objects    []string
		gardenAPI  landscapev1alpha1.GardenAPI
		leads      string
		wrong      string
		unresolved string
	}{
		"no binding":               {spec: "{" + workers + "}"},
		"no workers":               {spec: "{credentialsBindingName: b}", objects: []string{binding("{apiVersion: v1, kind: Secret, name: account}"), own}},
		"a CredentialsBinding":     {spec: byBinding, objects: []string{binding("{apiVersion: v1, kind: Secret, name: account, namespace: garden-local}"), own}, leads: "garden-local"},
		"without a namespace":      {spec: byBinding, objects: []string{binding("{apiVersion: v1, kind: Secret, name: account}"), own}, leads: "garden-local"},
		"a SecretBinding":          {spec: "{secretBindingName: b, " + workers + "}", objects: []string{secretBinding, own}, leads: "garden-local"},
		"the other kind of name":   {spec: byBinding, objects: []string{secretBinding, own}, wrong: "object not found: CredentialsBinding garden-local/b in cluster virtual (spec.credentialsBindingName)", unresolved: "CredentialsBinding garden-local/b"},
		"no SecretBinding":         {spec: "{secretBindingName: b, " + workers + "}", wrong: "object not found: SecretBinding garden-local/b in cluster virtual (spec.secretBindingName)", unresolved: "SecretBinding garden-local/b"},
		"no Secret":                {spec: byBinding, objects: []string{binding("{apiVersion: v1, kind: Secret, name: account}"), others}, wrong: "object not found: Secret garden-local/account in cluster virtual (credentialsRef of CredentialsBinding garden-local/b)", unresolved: "Secret garden-local/account"},
		"a WorkloadIdentity":       {spec: byBinding, objects: []string{binding("{apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: account}"), own}, wrong: "refers to WorkloadIdentity garden-local/account (credentialsRef); Pergola passes only Secrets to extensions: refer to a Secret", unresolved: "WorkloadIdentity garden-local/account"},
		"an InternalSecret":        {spec: byBinding, objects: []string{binding("{apiVersion: core.gardener.cloud/v1beta1, kind: InternalSecret, name: account}"), own}, wrong: "refers to InternalSecret garden-local/account", unresolved: "InternalSecret garden-local/account"},
		"a Secret of others":       {spec: byBinding, objects: []string{binding("{apiVersion: v1, kind: Secret, name: account, namespace: garden-other}"), others}, wrong: "in another namespace; only gardener-apiserver (spec.gardenAPI: aggregated) checks that the author of a binding may read it: refer to a Secret in namespace garden-local", unresolved: "Secret garden-other/account"},
		"one that upstream checks": {spec: byBinding, objects: []string{binding("{apiVersion: v1, kind: Secret, name: account, namespace: garden-other}"), others}, gardenAPI: landscapev1alpha1.GardenAPIAggregated, leads: "garden-other"},
	} {
		t.Run(name, func(t *testing.T) {
			in := shootInput(t, c.spec)
			in.GardenAPI = c.gardenAPI
			found, has, err := findCredentials(in, "virtual", storedObjects(t, c.objects...))
			require.NoError(t, err)
			require.Equal(t, c.leads != "" || c.wrong != "", has)
			if !has {
				return
			}
			b, _, err := CopyBundle(shoot, []LookupResult{found})
			require.NoError(t, err)
			facts, err := Facts([]LookupResult{found})
			require.NoError(t, err)
			assert.Empty(t, facts, "no component reads an account")
			if c.wrong != "" {
				require.ErrorContains(t, found.Problem, c.wrong)
				assert.NotContains(t, found.Problem.Error(), "c2VjcmV0")
				assert.Equal(t, []string{c.unresolved}, b.Unresolved)
				assert.Empty(t, b.Objects)
				return
			}
			require.NoError(t, found.Problem)
			assert.Equal(t, c.leads, found.Namespace)
			require.Len(t, b.Objects, 1)
			assert.Equal(t, object(t, `
apiVersion: v1
kind: Secret
metadata:
  name: cloudprovider
  namespace: shoot--local--s
  labels: {gardener.cloud/purpose: cloudprovider, references.pergola.dev/copy: "true"}
type: Opaque
data: {key: c2VjcmV0}
`).Object, b.Objects[0].Object)
		})
	}
}

// TestUnreadableCredentials checks that a cluster error does not count as a missing object.
func TestUnreadableCredentials(t *testing.T) {
	_, has, err := findCredentials(shootInput(t, "{secretBindingName: b, "+workers+"}"), "virtual", func(apply.Ref) (*unstructured.Unstructured, error) { return nil, errors.New("connection refused") })
	assert.False(t, has)
	require.EqualError(t, err, "read the credentials that spec.secretBindingName leads to: connection refused")
}

// TestEmptyCredentials checks that a Secret without data gives a copy without data or the user's
// metadata.
func TestEmptyCredentials(t *testing.T) {
	b, _, err := CopyBundle(shoot, []LookupResult{{Credentials: true, Object: object(t, `
apiVersion: v1
kind: Secret
metadata: {name: account, namespace: garden-local, labels: {a: b}, annotations: {a: b}, finalizers: [gardener.cloud/gardener]}
immutable: true
type: kubernetes.io/basic-auth
`)}})
	require.NoError(t, err)
	assert.Equal(t, object(t, `
apiVersion: v1
kind: Secret
metadata:
  name: cloudprovider
  namespace: shoot--local--s
  labels: {gardener.cloud/purpose: cloudprovider, references.pergola.dev/copy: "true"}
type: Opaque
`).Object, b.Objects[0].Object)
}

// TestDeclaredCredentials checks that a plan takes the binding and the Secret from Git, or the live
// ones if Git declares only one of them.
func TestDeclaredCredentials(t *testing.T) {
	const (
		binding = "{apiVersion: security.gardener.cloud/v1alpha1, kind: CredentialsBinding, metadata: {name: b, namespace: garden-local}, credentialsRef: {apiVersion: v1, kind: Secret, name: account}}"
		secret  = "{apiVersion: v1, kind: Secret, metadata: {name: account, namespace: garden-local}, stringData: {key: secret}}"
	)
	for name, c := range map[string]struct {
		declared []string
		expected bool
	}{
		"both": {[]string{binding, secret}, true}, "the binding": {[]string{binding}, false}, "the Secret": {[]string{secret}, false}, "neither": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := shootInput(t, "{credentialsBindingName: b, "+workers+"}")
			read := storedObjects(t, c.declared...)
			in.DeclaredCredentials = func(kind, namespace, name string) *unstructured.Unstructured {
				for _, version := range []string{"v1", bindingVersions["CredentialsBinding"]} {
					if o, _ := read(apply.Ref{APIVersion: version, Kind: kind, Namespace: namespace, Name: name}); o != nil {
						return o
					}
				}
				return nil
			}
			problem := errors.New("object not found")
			out := WithDeclared([]LookupResult{{Credentials: true, Problem: problem}}, in)
			if !c.expected {
				require.ErrorIs(t, out[0].Problem, problem)
				return
			}
			require.NoError(t, out[0].Problem)
			b, _, err := CopyBundle(shoot, out)
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"key": "c2VjcmV0"}, b.Objects[0].Object["data"])
			assert.NotContains(t, b.Objects[0].Object, "stringData")
		})
	}
}
