// SPDX-License-Identifier: Apache-2.0

package mutation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

const (
	workersYAML    = "\nprovider: {type: example, workers: [{name: a, machine: {type: intel, image: {name: both, version: 2.2.0}}}]}"
	workerlessYAML = "\nprovider: {type: example}"
	kubernetesYAML = "kubernetes: {version: 1.35.2}"
)

func TestNetworks(t *testing.T) {
	const pods, services = "spec.networking.pods", "spec.networking.services"
	for name, test := range map[string]struct {
		spec string
		want map[string]any
	}{
		"from the seed":         {spec: "seedName: eu" + workersYAML, want: map[string]any{pods: "100.1.0.0/16", services: "100.2.0.0/16"}},
		"without workers":       {spec: "seedName: eu" + workerlessYAML, want: map[string]any{services: "100.2.0.0/16"}},
		"what is set stays":     {spec: "seedName: eu\nnetworking: {pods: 10.9.0.0/16}" + workersYAML, want: map[string]any{services: "100.2.0.0/16"}},
		"no seed yet":           {spec: workersYAML, want: map[string]any{}},
		"unknown seed":          {spec: "seedName: us" + workersYAML, want: map[string]any{}},
		"another family":        {spec: "seedName: eu\nnetworking: {ipFamilies: [IPv6]}" + workersYAML, want: map[string]any{}},
		"both families":         {spec: "seedName: eu\nnetworking: {ipFamilies: [IPv4, IPv6]}" + workersYAML, want: map[string]any{pods: "100.1.0.0/16", services: "100.2.0.0/16"}},
		"IPv6 without workers":  {spec: "seedName: eu\nnetworking: {ipFamilies: [IPv6]}" + workerlessYAML, want: map[string]any{services: "fd79:1aa1:d36::/112"}},
		"an empty one is wrong": {spec: "seedName: eu\nnetworking: {pods: '', services: 10.8.0.0/16}" + workersYAML, want: map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			_, result := mutateTwice(t, newTestMutator(t, profileYAML, seedYAML), newShoot(t, kubernetesYAML+"\n"+test.spec), nil)
			assert.Equal(t, test.want, changesOf(result, "shoot/networks"))
		})
	}
}

func TestDefaultDomainAndProvider(t *testing.T) {
	const secrets = `apiVersion: v1
kind: Secret
metadata: {name: low, namespace: garden, labels: {gardener.cloud/role: default-domain}, annotations: {dns.gardener.cloud/domain: low.example.org, dns.gardener.cloud/provider: route}}
---
apiVersion: v1
kind: Secret
metadata: {name: high, namespace: garden, labels: {gardener.cloud/role: default-domain}, annotations: {dns.gardener.cloud/domain: high.example.org, dns.gardener.cloud/provider: route, dns.gardener.cloud/domain-default-priority: "5"}}
---
apiVersion: v1
kind: Secret
metadata: {name: elsewhere, namespace: garden-dev, labels: {gardener.cloud/role: default-domain}, annotations: {dns.gardener.cloud/domain: x.org, dns.gardener.cloud/domain-default-priority: "9"}}
---
apiVersion: core.gardener.cloud/v1beta1
kind: Seed
metadata: {name: plain}
spec: {provider: {type: example, region: here}}`
	const domain, first, second = "spec.dns.domain", "spec.dns.providers[0].primary", "spec.dns.providers[1].primary"
	for name, test := range map[string]struct {
		spec, old string
		domain    any
		primary   map[string]any
	}{
		"of the seed":                    {spec: "seedName: eu", domain: "botany.dev.first.example.org"},
		"of the landscape, by priority":  {spec: "seedName: plain", domain: "botany.dev.high.example.org"},
		"not before the seed":            {spec: "purpose: testing"},
		"unmanaged":                      {spec: "seedName: eu\ndns: {providers: [{type: unmanaged}]}", primary: map[string]any{first: true}},
		"one's own":                      {spec: "seedName: eu\ndns: {domain: a.org, providers: [{type: x}, {type: other}]}", primary: map[string]any{first: true}},
		"there is a primary one":         {spec: "seedName: eu\ndns: {domain: a.org, providers: [{type: x}, {type: other, primary: true}]}"},
		"below a default domain":         {spec: "seedName: eu\ndns: {domain: botany.dev.second.example.org, providers: [{type: x}]}"},
		"the primary one from before":    {spec: "seedName: eu\ndns: {domain: a.org, providers: [{type: x}, {type: other}]}", old: "seedName: eu\ndns: {domain: a.org, providers: [{type: other, primary: true}]}", primary: map[string]any{second: true}},
		"without the previous value":     {spec: "seedName: eu\ndns: {domain: a.org, providers: [{type: x}]}", old: "seedName: eu\ndns: {domain: a.org, providers: [{type: other, primary: true}]}", primary: map[string]any{first: true}},
		"what was given up is not asked": {spec: "seedName: us"},
	} {
		t.Run(name, func(t *testing.T) {
			var old *unstructured.Unstructured
			if test.old != "" {
				old = newShoot(t, kubernetesYAML+"\n"+test.old+workersYAML)
			}
			_, result := mutateTwice(t, newTestMutator(t, profileYAML, seedYAML, secrets), newShoot(t, kubernetesYAML+"\n"+test.spec+workersYAML), old)
			assert.Equal(t, test.domain, changesOf(result, "shoot/default-domain")[domain])
			if test.primary == nil {
				test.primary = map[string]any{}
			}
			assert.Equal(t, test.primary, changesOf(result, "shoot/primary-dns-provider"))
		})
	}
	unnamed := newShoot(t, kubernetesYAML+"\nseedName: eu"+workersYAML)
	unnamed.SetName("")
	unnamed.SetGenerateName("b-")
	_, result := mutateTwice(t, newTestMutator(t, profileYAML, seedYAML), unnamed, nil)
	assert.Empty(t, changesOf(result, "shoot/default-domain"), "the name is not known yet")
}

func TestDNSCredentials(t *testing.T) {
	for version, want := range map[string]map[string]any{
		"1.34.4": {"spec.dns.providers[0].credentialsRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "old"}, "spec.dns.providers[1].secretName": "new"},
		"1.35.2": {},
	} {
		t.Run(version, func(t *testing.T) {
			out, result := mutateTwice(t, newTestMutator(t, profileYAML), newShoot(t, "kubernetes: {version: "+version+"}\ndns: {providers: [{type: x, secretName: old}, {type: x, credentialsRef: {apiVersion: v1, kind: Secret, name: new}}, {type: x, credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: wi}}]}"+workersYAML), nil)
			got := changesOf(result, "shoot/dns-credentials")
			assert.Len(t, got, len(want))
			providers, _, _ := unstructured.NestedSlice(out.Object, "spec", "dns", "providers")
			if len(want) > 0 {
				assert.Equal(t, want["spec.dns.providers[0].credentialsRef"], providers[0].(map[string]any)["credentialsRef"])
				assert.Equal(t, "new", providers[1].(map[string]any)["secretName"])
			}
			assert.NotContains(t, providers[2], "secretName")
		})
	}
}

func TestTolerationsAndExposureClass(t *testing.T) {
	const class = `apiVersion: core.gardener.cloud/v1beta1
kind: ExposureClass
metadata: {name: internet}
handler: internet
scheduling:
  seedSelector: {matchLabels: {network: public}, providerTypes: [b, a]}
  tolerations: [{key: exposed}]`
	s := newTestMutator(t, profileYAML, seedYAML, class)
	out, result := mutateTwice(t, s, newShoot(t, kubernetesYAML+"\nexposureClassName: internet\ntolerations: [{key: b}]\nseedSelector: {providerTypes: [c], matchLabels: {own: 'true'}}"+workersYAML), nil)
	tolerations, _, _ := unstructured.NestedSlice(out.Object, "spec", "tolerations")
	assert.Equal(t, []any{map[string]any{"key": "b"}, map[string]any{"key": "a"}, map[string]any{"key": "exposed"}}, tolerations, "a key that is there stays as it is")
	selector, _, _ := unstructured.NestedMap(out.Object, "spec", "seedSelector")
	assert.Equal(t, map[string]any{"matchLabels": map[string]any{"own": "true", "network": "public"}, "providerTypes": []any{"a", "b", "c"}}, selector)
	assert.Len(t, changesOf(result, "shoot/project-tolerations"), 1)
	assert.Len(t, changesOf(result, "shoot/exposure-class"), 3)

	for name, conflict := range map[string]string{
		"toleration": "tolerations: [{key: exposed}]", "label": "seedSelector: {matchLabels: {network: private}}",
	} {
		_, result := mutateTwice(t, s, newShoot(t, kubernetesYAML+"\nexposureClassName: internet\n"+conflict+workersYAML), nil)
		assert.Empty(t, changesOf(result, "shoot/exposure-class"), name)
	}
	old := newShoot(t, kubernetesYAML+workersYAML)
	_, result = mutateTwice(t, s, newShoot(t, kubernetesYAML+"\nexposureClassName: internet"+workersYAML), old)
	assert.Empty(t, changesOf(result, "shoot/exposure-class"), "only new Shoots get them")
	assert.Empty(t, changesOf(result, "shoot/project-tolerations"))
}

func TestMutationsOfNewShoots(t *testing.T) {
	s := newTestMutator(t, profileYAML)
	_, result := mutateTwice(t, s, newShoot(t, kubernetesYAML+workersYAML), nil)
	assert.Equal(t, map[string]any{"spec.kubernetes.verticalPodAutoscaler.enabled": true}, changesOf(result, "shoot/vertical-pod-autoscaler"))
	assert.Equal(t, map[string]any{"spec.maintenance.autoRotation.credentials.etcdEncryptionKey.rotationPeriod": "672h0m0s"}, changesOf(result, "shoot/key-rotation"))
	assert.Equal(t, map[string]any{
		"spec.kubernetes.kubelet.kubeReserved.cpu": "80m", "spec.kubernetes.kubelet.kubeReserved.memory": "1Gi", "spec.kubernetes.kubelet.kubeReserved.pid": "20k",
	}, changesOf(result, "shoot/kube-reserved"))

	_, result = mutateTwice(t, s, newShoot(t, "kubernetes: {version: 1.35.2, verticalPodAutoscaler: {enabled: false}, kubelet: {kubeReserved: {cpu: 1}}}\nmaintenance: {autoRotation: {credentials: {etcdEncryptionKey: {rotationPeriod: 0s}}}}"+workersYAML), nil)
	assert.Empty(t, changesOf(result, "shoot/vertical-pod-autoscaler"))
	assert.Empty(t, changesOf(result, "shoot/key-rotation"))
	assert.Len(t, changesOf(result, "shoot/kube-reserved"), 2)

	_, result = mutateTwice(t, s, newShoot(t, kubernetesYAML+workerlessYAML), nil)
	assert.Empty(t, changesOf(result, "shoot/vertical-pod-autoscaler"))
	assert.Empty(t, changesOf(result, "shoot/kube-reserved"))

	_, result = mutateTwice(t, s, newShoot(t, kubernetesYAML+workersYAML), newShoot(t, kubernetesYAML+workersYAML))
	assert.Empty(t, changesOf(result, "shoot/vertical-pod-autoscaler"))
	assert.Empty(t, changesOf(result, "shoot/key-rotation"))
	assert.Len(t, changesOf(result, "shoot/kube-reserved"), 3)

	deleted := newShoot(t, kubernetesYAML+workersYAML)
	deleted.SetDeletionTimestamp(&testMetaTime)
	_, result = mutateTwice(t, s, deleted, nil)
	assert.Empty(t, result.Changes)
}

func TestSyncProfileFields(t *testing.T) {
	for version, want := range map[string]int{"1.33.8": 2, "1.35.2": 0} {
		written := newShoot(t, "kubernetes: {version: "+version+"}\ncloudProfileName: cloud"+workerlessYAML)
		unstructured.RemoveNestedField(written.Object, "spec", "cloudProfile")
		_, result := mutateTwice(t, newTestMutator(t, profileYAML), written, nil)
		assert.Len(t, changesOf(result, "shoot/cloud-profile"), want, version)
	}
}

// TestChangesMatchTypedObject checks that the changes describe the mutated Go object completely.
func TestChangesMatchTypedObject(t *testing.T) {
	written := newShoot(t, "seedName: eu\nkubernetes: {version: '1.35'}\ndns: {providers: [{type: x, secretName: a}]}\ntolerations: [{key: z}]\nprovider: {type: example, workers: [{name: a, machine: {type: arm}}, {name: b, kubernetes: {version: '1.34'}, machine: {type: intel, image: {name: both, version: '2'}}}]}")
	written.SetNamespace("garden-dev")
	out, _ := mutateTwice(t, newTestMutator(t, profileYAML, seedYAML), written, nil)
	fromChanges, direct := &gardencorev1beta1.Shoot{}, &gardencorev1beta1.Shoot{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(out.Object, fromChanges))
	gardencorev1beta1.SetDefaults_Shoot(fromChanges)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(written.Object, direct))
	newTestMutator(t, profileYAML, seedYAML).MutateShoot(direct, nil)
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(direct)
	require.NoError(t, err)
	got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fromChanges)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// BenchmarkShoot mutates one Shoot with shared Surroundings, as for a landscape of 10,000 Shoots.
func BenchmarkShoot(b *testing.B) {
	s := newTestMutator(b, profileYAML, seedYAML)
	object := newShoot(b, "seedName: eu\nkubernetes: {version: '1.35'}\nprovider: {type: example, workers: [{name: a, machine: {type: arm}}, {name: b, machine: {type: intel}}]}")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.MutateCopy(object, nil); err != nil {
			b.Fatal(err)
		}
	}
}
