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
	workers    = "\nprovider: {type: example, workers: [{name: a, machine: {type: intel, image: {name: both, version: 2.2.0}}}]}"
	workerless = "\nprovider: {type: example}"
	kubernetes = "kubernetes: {version: 1.35.2}"
)

func TestNetworks(t *testing.T) {
	const pods, services = "spec.networking.pods", "spec.networking.services"
	for name, test := range map[string]struct {
		spec string
		want map[string]any
	}{
		"from the seed":         {spec: "seedName: eu" + workers, want: map[string]any{pods: "100.1.0.0/16", services: "100.2.0.0/16"}},
		"without workers":       {spec: "seedName: eu" + workerless, want: map[string]any{services: "100.2.0.0/16"}},
		"what is set stays":     {spec: "seedName: eu\nnetworking: {pods: 10.9.0.0/16}" + workers, want: map[string]any{services: "100.2.0.0/16"}},
		"no seed yet":           {spec: workers, want: map[string]any{}},
		"unknown seed":          {spec: "seedName: us" + workers, want: map[string]any{}},
		"another family":        {spec: "seedName: eu\nnetworking: {ipFamilies: [IPv6]}" + workers, want: map[string]any{}},
		"both families":         {spec: "seedName: eu\nnetworking: {ipFamilies: [IPv4, IPv6]}" + workers, want: map[string]any{pods: "100.1.0.0/16", services: "100.2.0.0/16"}},
		"IPv6 without workers":  {spec: "seedName: eu\nnetworking: {ipFamilies: [IPv6]}" + workerless, want: map[string]any{services: "fd79:1aa1:d36::/112"}},
		"an empty one is wrong": {spec: "seedName: eu\nnetworking: {pods: '', services: 10.8.0.0/16}" + workers, want: map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			_, result := applied(t, around(t, profileYAML, seedYAML), shoot(t, kubernetes+"\n"+test.spec), nil)
			assert.Equal(t, test.want, by(result, "shoot/networks"))
		})
	}
}

func TestDNS(t *testing.T) {
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
		"without the one from before":    {spec: "seedName: eu\ndns: {domain: a.org, providers: [{type: x}]}", old: "seedName: eu\ndns: {domain: a.org, providers: [{type: other, primary: true}]}", primary: map[string]any{first: true}},
		"what was given up is not asked": {spec: "seedName: us"},
	} {
		t.Run(name, func(t *testing.T) {
			var old *unstructured.Unstructured
			if test.old != "" {
				old = shoot(t, kubernetes+"\n"+test.old+workers)
			}
			_, result := applied(t, around(t, profileYAML, seedYAML, secrets), shoot(t, kubernetes+"\n"+test.spec+workers), old)
			assert.Equal(t, test.domain, by(result, "shoot/default-domain")[domain])
			if test.primary == nil {
				test.primary = map[string]any{}
			}
			assert.Equal(t, test.primary, by(result, "shoot/primary-dns-provider"))
		})
	}
	unnamed := shoot(t, kubernetes+"\nseedName: eu"+workers)
	unnamed.SetName("")
	unnamed.SetGenerateName("b-")
	_, result := applied(t, around(t, profileYAML, seedYAML), unnamed, nil)
	assert.Empty(t, by(result, "shoot/default-domain"), "the name is not known yet")
}

func TestDNSCredentials(t *testing.T) {
	for version, want := range map[string]map[string]any{
		"1.34.4": {"spec.dns.providers[0].credentialsRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "old"}, "spec.dns.providers[1].secretName": "new"},
		"1.35.2": {},
	} {
		t.Run(version, func(t *testing.T) {
			out, result := applied(t, around(t, profileYAML), shoot(t, "kubernetes: {version: "+version+"}\ndns: {providers: [{type: x, secretName: old}, {type: x, credentialsRef: {apiVersion: v1, kind: Secret, name: new}}, {type: x, credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: wi}}]}"+workers), nil)
			got := by(result, "shoot/dns-credentials")
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
	s := around(t, profileYAML, seedYAML, class)
	out, result := applied(t, s, shoot(t, kubernetes+"\nexposureClassName: internet\ntolerations: [{key: b}]\nseedSelector: {providerTypes: [c], matchLabels: {own: 'true'}}"+workers), nil)
	tolerations, _, _ := unstructured.NestedSlice(out.Object, "spec", "tolerations")
	assert.Equal(t, []any{map[string]any{"key": "b"}, map[string]any{"key": "a"}, map[string]any{"key": "exposed"}}, tolerations, "a key that is there stays as it is")
	selector, _, _ := unstructured.NestedMap(out.Object, "spec", "seedSelector")
	assert.Equal(t, map[string]any{"matchLabels": map[string]any{"own": "true", "network": "public"}, "providerTypes": []any{"a", "b", "c"}}, selector)
	assert.Len(t, by(result, "shoot/project-tolerations"), 1)
	assert.Len(t, by(result, "shoot/exposure-class"), 3)

	for name, conflict := range map[string]string{
		"toleration": "tolerations: [{key: exposed}]", "label": "seedSelector: {matchLabels: {network: private}}",
	} {
		_, result := applied(t, s, shoot(t, kubernetes+"\nexposureClassName: internet\n"+conflict+workers), nil)
		assert.Empty(t, by(result, "shoot/exposure-class"), name)
	}
	old := shoot(t, kubernetes+workers)
	_, result = applied(t, s, shoot(t, kubernetes+"\nexposureClassName: internet"+workers), old)
	assert.Empty(t, by(result, "shoot/exposure-class"), "only new Shoots get them")
	assert.Empty(t, by(result, "shoot/project-tolerations"))
}

func TestNewShoots(t *testing.T) {
	s := around(t, profileYAML)
	_, result := applied(t, s, shoot(t, kubernetes+workers), nil)
	assert.Equal(t, map[string]any{"spec.kubernetes.verticalPodAutoscaler.enabled": true}, by(result, "shoot/vertical-pod-autoscaler"))
	assert.Equal(t, map[string]any{"spec.maintenance.autoRotation.credentials.etcdEncryptionKey.rotationPeriod": "672h0m0s"}, by(result, "shoot/key-rotation"))
	assert.Equal(t, map[string]any{
		"spec.kubernetes.kubelet.kubeReserved.cpu": "80m", "spec.kubernetes.kubelet.kubeReserved.memory": "1Gi", "spec.kubernetes.kubelet.kubeReserved.pid": "20k",
	}, by(result, "shoot/kube-reserved"))

	_, result = applied(t, s, shoot(t, "kubernetes: {version: 1.35.2, verticalPodAutoscaler: {enabled: false}, kubelet: {kubeReserved: {cpu: 1}}}\nmaintenance: {autoRotation: {credentials: {etcdEncryptionKey: {rotationPeriod: 0s}}}}"+workers), nil)
	assert.Empty(t, by(result, "shoot/vertical-pod-autoscaler"))
	assert.Empty(t, by(result, "shoot/key-rotation"))
	assert.Len(t, by(result, "shoot/kube-reserved"), 2)

	_, result = applied(t, s, shoot(t, kubernetes+workerless), nil)
	assert.Empty(t, by(result, "shoot/vertical-pod-autoscaler"))
	assert.Empty(t, by(result, "shoot/kube-reserved"))

	_, result = applied(t, s, shoot(t, kubernetes+workers), shoot(t, kubernetes+workers))
	assert.Empty(t, by(result, "shoot/vertical-pod-autoscaler"))
	assert.Empty(t, by(result, "shoot/key-rotation"))
	assert.Len(t, by(result, "shoot/kube-reserved"), 3)

	deleted := shoot(t, kubernetes+workers)
	deleted.SetDeletionTimestamp(&now1)
	_, result = applied(t, s, deleted, nil)
	assert.Empty(t, result.Changes)
}

func TestOlderFieldOfTheProfile(t *testing.T) {
	for version, want := range map[string]int{"1.33.8": 2, "1.35.2": 0} {
		written := shoot(t, "kubernetes: {version: "+version+"}\ncloudProfileName: cloud"+workerless)
		unstructured.RemoveNestedField(written.Object, "spec", "cloudProfile")
		_, result := applied(t, around(t, profileYAML), written, nil)
		assert.Len(t, by(result, "shoot/cloud-profile"), want, version)
	}
}

// TestTypedAndWritten checks that the changes describe the mutated Go object completely.
func TestTypedAndWritten(t *testing.T) {
	written := shoot(t, "seedName: eu\nkubernetes: {version: '1.35'}\ndns: {providers: [{type: x, secretName: a}]}\ntolerations: [{key: z}]\nprovider: {type: example, workers: [{name: a, machine: {type: arm}}, {name: b, kubernetes: {version: '1.34'}, machine: {type: intel, image: {name: both, version: '2'}}}]}")
	written.SetNamespace("garden-dev")
	out, _ := applied(t, around(t, profileYAML, seedYAML), written, nil)
	fromChanges, direct := &gardencorev1beta1.Shoot{}, &gardencorev1beta1.Shoot{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(out.Object, fromChanges))
	gardencorev1beta1.SetDefaults_Shoot(fromChanges)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(written.Object, direct))
	around(t, profileYAML, seedYAML).Shoot(direct, nil)
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(direct)
	require.NoError(t, err)
	got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fromChanges)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// BenchmarkShoot mutates one Shoot with shared Surroundings, as for a landscape of 10,000 Shoots.
func BenchmarkShoot(b *testing.B) {
	s := around(b, profileYAML, seedYAML)
	object := shoot(b, "seedName: eu\nkubernetes: {version: '1.35'}\nprovider: {type: example, workers: [{name: a, machine: {type: arm}}, {name: b, machine: {type: intel}}]}")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Apply(object, nil); err != nil {
			b.Fatal(err)
		}
	}
}
