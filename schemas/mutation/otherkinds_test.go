// SPDX-License-Identifier: Apache-2.0

package mutation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/schemas/mutation"
)

var testMetaTime = metav1.NewTime(testTime)

const registrationYAML = `apiVersion: core.gardener.cloud/v1beta1
kind: ControllerRegistration
metadata: {name: all}
spec:
  resources:
  - {kind: Extension, type: everywhere, autoEnable: [shoot, seed], workerlessSupported: true}
  - {kind: Extension, type: nodes, autoEnable: [shoot]}
  - {kind: Extension, type: asked}
  - {kind: Infrastructure, type: example}`

// changedLabels returns the keys of set labels, and of removed labels with a minus.
func changedLabels(result mutation.Result) []string {
	var out []string
	for _, change := range result.Changes {
		if key, ok := labelKey(change.Field); ok && change.Value == nil {
			out = append(out, "-"+key)
		} else if ok {
			out = append(out, key)
		}
	}
	return out
}

func labelKey(field string) (string, bool) {
	const prefix = "metadata.labels["
	if len(field) < len(prefix) || field[:len(prefix)] != prefix {
		return "", false
	}
	return field[len(prefix) : len(field)-1], true
}

func TestExtensionAndSeedLabels(t *testing.T) {
	const extension, provider = "extensions.extensions.gardener.cloud/", "provider.extensions.gardener.cloud/"
	header := func(kind, group, name string) string {
		return "apiVersion: " + group + "\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: garden-dev, labels: {own: a, provider.extensions.gardener.cloud/stale: 'true'}}\n"
	}
	const core, security = "core.gardener.cloud/v1beta1", "security.gardener.cloud/v1alpha1"
	const bucket = "apiVersion: core.gardener.cloud/v1beta1\nkind: BackupBucket\nmetadata: {name: bucket}\nspec: {provider: {type: store, region: here}}"
	for name, test := range map[string]struct {
		object string
		want   []string
	}{
		"Shoot": {header("Shoot", core, "a") + "spec: {seedName: eu, extensions: [{type: asked}, {type: nodes, disabled: true}], networking: {type: net}, dns: {providers: [{type: unmanaged}, {type: route, primary: true}]}, provider: {type: example, workers: [{name: a, controlPlane: {}, cri: {name: containerd, containerRuntimes: [{type: gvisor}]}, machine: {type: intel, image: {name: both, version: 2.1.0}}}]}}",
			[]string{"-" + provider + "stale", "containerruntime.extensions.gardener.cloud/gvisor", "dnsrecord.extensions.gardener.cloud/route", extension + "asked", extension + "everywhere", "networking.extensions.gardener.cloud/net", "operatingsystemconfig.extensions.gardener.cloud/both", provider + "example", "name.seed.gardener.cloud/eu", "shoot.gardener.cloud/self-hosted"}},
		"Shoot without workers": {header("Shoot", core, "a") + "spec: {provider: {type: example}}", []string{"-" + provider + "stale", extension + "everywhere", provider + "example"}},
		"Seed":                  {header("Seed", core, "child") + "spec: {extensions: [{type: asked}], provider: {type: example}, backup: {provider: store}, dns: {provider: {type: route}}}", []string{"-" + provider + "stale", "dnsrecord.extensions.gardener.cloud/route", extension + "asked", extension + "everywhere", provider + "example", provider + "store", "name.seed.gardener.cloud/child", "name.seed.gardener.cloud/eu"}},
		"SecretBinding":         {header("SecretBinding", core, "a") + "provider: {type: 'x,y'}", []string{"-" + provider + "stale", provider + "x", provider + "y"}},
		"CredentialsBinding":    {header("CredentialsBinding", security, "a") + "provider: {type: x}", []string{"-" + provider + "stale", provider + "x"}},
		"WorkloadIdentity":      {header("WorkloadIdentity", security, "a") + "spec: {targetSystem: {type: x}}", []string{"-" + provider + "stale", provider + "x"}},
		"CloudProfile":          {header("CloudProfile", core, "a") + "spec: {type: stale}", nil},
		"NamespacedCloudProfile": {header("NamespacedCloudProfile", core, "a") + "spec: {parent: {kind: CloudProfile, name: cloud}}",
			[]string{"-" + provider + "stale", provider + "example"}},
		"without its parent":        {header("NamespacedCloudProfile", core, "a") + "spec: {parent: {kind: CloudProfile, name: other}}", nil},
		"BackupBucket":              {header("BackupBucket", core, "a") + "spec: {provider: {type: store}}", []string{"-" + provider + "stale", provider + "store"}},
		"BackupEntry":               {header("BackupEntry", core, "a") + "spec: {bucketName: bucket}", []string{"-" + provider + "stale", provider + "store"}},
		"a kind that has no labels": {header("ExposureClass", core, "a") + "handler: a", nil},
		"a broken Shoot":            {header("Shoot", core, "a") + "spec: {provider: text}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			managed := "apiVersion: seedmanagement.gardener.cloud/v1alpha1\nkind: ManagedSeed\nmetadata: {name: child, namespace: garden}\nspec: {shoot: {name: child}}"
			host := "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: child, namespace: garden}\nspec: {seedName: eu, provider: {type: example}}"
			out, result := mutateTwice(t, newTestMutator(t, seedYAML, profileYAML, registrationYAML, bucket, managed, host), decodeYAML(t, test.object), nil)
			assert.Equal(t, test.want, changedLabels(result))
			assert.Equal(t, "a", out.GetLabels()["own"])
			for _, key := range test.want {
				if key[0] == '-' {
					assert.NotContains(t, out.GetLabels(), key[1:])
				} else {
					assert.Equal(t, "true", out.GetLabels()[key])
				}
			}
		})
	}
}

func TestProjectOwner(t *testing.T) {
	project := func(spec string) *unstructured.Unstructured {
		return decodeYAML(t, "apiVersion: core.gardener.cloud/v1beta1\nkind: Project\nmetadata: {name: dev}\nspec: "+spec)
	}
	const alice, bob = "apiGroup: rbac.authorization.k8s.io, kind: User, name: alice", "apiGroup: rbac.authorization.k8s.io, kind: User, name: bob"
	s := newTestMutator(t)
	out, result := mutateTwice(t, s, project("{members: [{"+bob+", role: admin}, {"+alice+", role: admin, roles: [owner]}]}"), nil)
	owner, _, _ := unstructured.NestedMap(out.Object, "spec", "owner")
	assert.Equal(t, map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}, owner)
	assert.Len(t, result.Changes, 1)

	out, _ = mutateTwice(t, s, project("{owner: {kind: User, name: alice}, members: [{"+bob+", role: admin}]}"), nil)
	members, _, _ := unstructured.NestedSlice(out.Object, "spec", "members")
	require.Len(t, members, 2)
	assert.Equal(t, map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice", "role": "admin", "roles": []any{"owner"}}, members[1])

	_, result = mutateTwice(t, s, project("{members: [{"+bob+", role: admin}]}"), nil)
	assert.Empty(t, result.Changes, "who makes it is not known")
	_, result = mutateTwice(t, s, project("{members: [{"+alice+", role: owner}]}"), project("{description: before}"))
	assert.Empty(t, changesOf(result, "project/owner"), "only a new one gets an owner")
}

const hostYAML = `apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: host, namespace: garden-dev, uid: "77"}
spec:
  cloudProfile: {name: cloud}
  seedName: eu
  region: here
  kubernetes: {version: 1.35.2}
  networking: {nodes: 10.7.0.0/16}
  provider: {type: example, workers: [{name: a, zones: [z2, z1], machine: {type: intel}}, {name: b, zones: [z1], machine: {type: intel}}]}`

func TestManagedSeed(t *testing.T) {
	managed := func(config string) *unstructured.Unstructured {
		return decodeYAML(t, "apiVersion: seedmanagement.gardener.cloud/v1alpha1\nkind: ManagedSeed\nmetadata: {name: host, namespace: garden-dev}\nspec: {shoot: {name: host}, gardenlet: {config: "+config+"}}")
	}
	s := newTestMutator(t, seedYAML, profileYAML, hostYAML)
	out, result := mutateTwice(t, s, managed("{seedConfig: {spec: {backup: {}}}}"), nil)
	spec, _, _ := unstructured.NestedMap(out.Object, "spec", "gardenlet", "config", "seedConfig", "spec")
	assert.Equal(t, map[string]any{
		"backup":  map[string]any{"provider": "example"},
		"ingress": map[string]any{"controller": map[string]any{"kind": "nginx"}, "domain": "ingress.host.dev.first.example.org"},
		"dns": map[string]any{"provider": map[string]any{"type": "route", "credentialsRef": map[string]any{
			"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "dns"}}},
		"networks": map[string]any{"nodes": "10.7.0.0/16", "pods": "100.1.0.0/16", "services": "100.2.0.0/16"},
		"provider": map[string]any{"type": "example", "region": "here", "zones": []any{"z1", "z2"}},
		"settings": map[string]any{"verticalPodAutoscaler": map[string]any{"enabled": false}},
	}, spec, "the Shoot counts as the API shows it")
	assert.Equal(t, []string{"name.seed.gardener.cloud/eu"}, changedLabels(result))

	_, result = mutateTwice(t, s, managed("{seedConfig: {spec: {ingress: {domain: a.org, controller: {kind: nginx}}, dns: {provider: {type: own}}, networks: {nodes: 1.0.0.0/8, pods: 2.0.0.0/8, services: 3.0.0.0/8}, provider: {type: own, region: there, zones: [a]}, settings: {verticalPodAutoscaler: {enabled: true}}}}}"), nil)
	assert.Empty(t, changesOf(result, "managedseed/seed-config"), "what is set stays")
	_, result = mutateTwice(t, s, managed("{}"), nil)
	assert.Empty(t, changesOf(result, "managedseed/seed-config"))
	_, result = mutateTwice(t, newTestMutator(t), managed("{seedConfig: {spec: {}}}"), nil)
	assert.Empty(t, result.Changes, "the Shoot is not known")
}

func TestManagedSeedDNSProvider(t *testing.T) {
	managed := decodeYAML(t, "apiVersion: seedmanagement.gardener.cloud/v1alpha1\nkind: ManagedSeed\nmetadata: {name: host, namespace: garden-dev}\nspec: {shoot: {name: host}, gardenlet: {config: {seedConfig: {spec: {}}}}}")
	const credentials = "apiVersion: security.gardener.cloud/v1alpha1\nkind: CredentialsBinding\nmetadata: {name: cb, namespace: garden-dev}\nprovider: {type: example}\ncredentialsRef: {apiVersion: v1, kind: Secret, name: infra}"
	const secret = "apiVersion: core.gardener.cloud/v1beta1\nkind: SecretBinding\nmetadata: {name: sb, namespace: garden-dev}\nprovider: {type: example}\nsecretRef: {name: infra}"
	infra := map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": "garden-dev", "name": "infra"}
	for name, test := range map[string]struct {
		spec string
		want any
	}{
		"its own":                      {"dns: {domain: a.org, providers: [{type: x, credentialsRef: {apiVersion: v1, kind: Secret, name: own}}]}", map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": "garden-dev", "name": "own"}},
		"of the infrastructure":        {"credentialsBindingName: cb, dns: {domain: a.org, providers: [{type: x}]}", infra},
		"of the infrastructure, older": {"secretBindingName: sb, dns: {domain: a.org, providers: [{type: x}]}", infra},
		"unknown":                      {"credentialsBindingName: no, dns: {domain: a.org, providers: [{type: x}]}", nil},
		"nobody serves it":             {"dns: {domain: a.org}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			host := "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: host, namespace: garden-dev}\nspec: {seedName: eu, kubernetes: {version: 1.35.2}, provider: {type: example}, " + test.spec + "}"
			out, _ := mutateTwice(t, newTestMutator(t, seedYAML, host, credentials, secret), managed, nil)
			got, found, _ := unstructured.NestedFieldCopy(out.Object, "spec", "gardenlet", "config", "seedConfig", "spec", "dns", "provider", "credentialsRef")
			assert.Equal(t, test.want != nil, found)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestBastion(t *testing.T) {
	bastion := decodeYAML(t, "apiVersion: operations.gardener.cloud/v1alpha1\nkind: Bastion\nmetadata: {name: b, namespace: garden-dev}\nspec: {shootRef: {name: host}}")
	out, _ := mutateTwice(t, newTestMutator(t, seedYAML, profileYAML, hostYAML), bastion, nil)
	spec, _, _ := unstructured.NestedMap(out.Object, "spec")
	assert.Equal(t, "eu", spec["seedName"])
	assert.Equal(t, "example", spec["providerType"])
	require.Len(t, out.GetOwnerReferences(), 1)
	assert.Equal(t, types.UID("77"), out.GetOwnerReferences()[0].UID)

	_, result := mutateTwice(t, newTestMutator(t), bastion, nil)
	assert.Empty(t, result.Changes)
}

func TestMutationsAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutation.Mutations() {
		assert.False(t, seen[m.ID], m.ID)
		seen[m.ID] = true
		assert.NotEmpty(t, m.Title, m.ID)
		assert.NotEmpty(t, m.Source, m.ID)
		assert.NotEmpty(t, m.Kinds, m.ID)
	}
	assert.Len(t, mutation.ReadKinds(), 13)
}
