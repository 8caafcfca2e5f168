// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/local/living/livingtest"
)

// readRendered returns an Etcd as Pergola renders it for the demonstration.
func readRendered(t *testing.T, path string) *etcd {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(livingtest.Module(), "..", "..", "landscapes", "local", "golden", path))
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(data, &object.Object))
	e, err := parseEtcd(object)
	require.NoError(t, err)
	return e
}

func shootMain(t *testing.T) *etcd {
	return readRendered(t, "local/shoot--local--local/etcd-main/etcd.druid.gardener.cloud-shoot--local--local-etcd-main.yaml")
}

func TestStatefulSetOfRenderedEtcd(t *testing.T) {
	e := shootMain(t)
	set := e.statefulSet(shape{1, 1, 1}, "sum", nil)
	assert.Equal(t, "etcd-main-peer", set.Spec.ServiceName)
	assert.Equal(t, appsv1.ParallelPodManagement, set.Spec.PodManagementPolicy)
	assert.Equal(t, map[string]string{foundersAnnotation: "1", votersAnnotation: "1"}, set.Annotations)
	template := set.Spec.Template
	assert.Equal(t, "sum", template.Annotations[checksumAnnotation])
	assert.Equal(t, "false", template.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"])
	assert.Equal(t, "allowed", template.Labels["networking.gardener.cloud/to-dns"])
	for key, value := range e.Spec.Labels {
		assert.Equal(t, value, template.Labels[key], "the Etcd's own selector fits its Pods")
	}
	assert.Equal(t, "etcd-main", template.Labels[partOf])
	assert.Equal(t, "gardener-system-500", template.Spec.PriorityClassName)
	claim := set.Spec.VolumeClaimTemplates[0]
	assert.Equal(t, "main-etcd", claim.Name)
	assert.Equal(t, "25Gi", claim.Spec.Resources.Requests.Storage().String())

	container := template.Spec.Containers[0]
	assert.Equal(t, []string{"/usr/local/bin/etcd", "--config-file=/var/etcd/config/$(POD_NAME).yaml"}, container.Command)
	assert.Equal(t, "150m", container.Resources.Requests.Cpu().String())
	assert.Equal(t, 9095, container.ReadinessProbe.HTTPGet.Port.IntValue())
	secrets := map[string]string{}
	for _, volume := range template.Spec.Volumes {
		for _, mount := range container.VolumeMounts {
			if mount.Name == volume.Name && volume.Secret != nil {
				secrets[mount.MountPath] = volume.Secret.SecretName
			}
		}
	}
	assert.Equal(t, map[string]string{
		"/var/etcd/ssl/ca": "ca-etcd-bundle-XXXXXXXX", "/var/etcd/ssl/server": "etcd-server-main-XXXXXXXX", "/var/etcd/ssl/client": "etcd-client-XXXXXXXX",
	}, secrets)

	bigger := resource.MustParse("50Gi")
	e.Spec.StorageCapacity = &bigger
	assert.Equal(t, set.Spec.VolumeClaimTemplates, e.statefulSet(shape{1, 1, 1}, "sum", set).Spec.VolumeClaimTemplates, "claims cannot be changed")
}

func TestMemberConfiguration(t *testing.T) {
	e := shootMain(t)
	e.Spec.Replicas = 3
	e.Spec.Etcd.PeerURLTLS = &tlsRefs{}
	e.Spec.Etcd.PeerURLTLS.CA.Name, e.Spec.Etcd.PeerURLTLS.CA.DataKey = "ca-etcd-peer-bundle", "bundle.crt"
	const at = ".etcd-main-peer.shoot--local--local.svc:2380"
	for _, test := range []struct {
		ordinal, founders int32
		state, cluster    string
	}{
		{0, 3, "new", "etcd-main-0=https://etcd-main-0" + at + ",etcd-main-1=https://etcd-main-1" + at + ",etcd-main-2=https://etcd-main-2" + at},
		{0, 1, "new", "etcd-main-0=https://etcd-main-0" + at},
		{1, 1, "existing", "etcd-main-0=https://etcd-main-0" + at + ",etcd-main-1=https://etcd-main-1" + at},
	} {
		got := e.memberConfiguration(test.ordinal, test.founders, false)
		assert.Equal(t, test.state, got.InitialClusterState)
		assert.Equal(t, test.cluster, got.InitialCluster)
	}
	got := e.memberConfiguration(2, 3, true)
	assert.Equal(t, "etcd-main-2", got.Name)
	assert.Equal(t, "https://etcd-main-2"+at, got.AdvertisePeerURLs)
	assert.Equal(t, "https://etcd-main-2.etcd-main-peer.shoot--local--local.svc:2379", got.AdvertiseClientURLs)
	assert.Equal(t, "https://0.0.0.0:2380", got.ListenPeerURLs)
	assert.Equal(t, "http://0.0.0.0:9095", got.ListenMetricsURLs)
	assert.Equal(t, int64(8<<30), got.QuotaBackendBytes)
	assert.Equal(t, "extensive", got.Metrics)
	assert.Equal(t, &security{"/var/etcd/ssl/server/tls.crt", "/var/etcd/ssl/server/tls.key", "/var/etcd/ssl/ca/bundle.crt", true}, got.ClientSecurity)
	assert.Equal(t, &security{"/var/etcd/ssl/peer/server/tls.crt", "/var/etcd/ssl/peer/server/tls.key", "/var/etcd/ssl/peer/ca/bundle.crt", true}, got.PeerSecurity)
	assert.True(t, got.NoSync)

	before, first, err := e.configFiles(1, 1, false)
	require.NoError(t, err)
	after, second, err := e.configFiles(3, 1, false)
	require.NoError(t, err)
	assert.Len(t, before, 1)
	assert.Len(t, after, 3)
	assert.Equal(t, first, second, "members that join restart nobody")
	e.Spec.Etcd.Quota = new(resource.MustParse("4Gi"))
	_, third, err := e.configFiles(3, 1, false)
	require.NoError(t, err)
	assert.NotEqual(t, first, third)
}

func TestServicesAndBudget(t *testing.T) {
	e := shootMain(t)
	client, peer := e.clientServiceObject(), e.peerServiceObject()
	assert.Equal(t, "etcd-main-client", client.Name)
	assert.Equal(t, e.Spec.Etcd.ClientService.Annotations, client.Annotations)
	assert.EqualValues(t, 2379, client.Spec.Ports[0].Port)
	assert.Equal(t, corev1.ClusterIPNone, peer.Spec.ClusterIP)
	assert.True(t, peer.Spec.PublishNotReadyAddresses)
	assert.Equal(t, e.selector(), peer.Spec.Selector)
	assert.Equal(t, 0, e.disruptionBudget().Spec.MinAvailable.IntValue())
	assert.Nil(t, e.disruptionBudget().Spec.UnhealthyPodEvictionPolicy)

	events := readRendered(t, "runtime/garden/etcd-events/etcd.druid.gardener.cloud-garden-virtual-garden-etcd-events.yaml")
	events.Spec.Replicas = 3
	assert.Equal(t, 2, events.disruptionBudget().Spec.MinAvailable.IntValue())
	assert.Equal(t, policyv1.AlwaysAllow, *events.disruptionBudget().Spec.UnhealthyPodEvictionPolicy)
}

func TestShape(t *testing.T) {
	set := func(s shape) *appsv1.StatefulSet {
		set := &appsv1.StatefulSet{}
		set.Annotations, set.Spec.Replicas = s.annotations(), &s.Pods
		return set
	}
	for name, test := range map[string]struct {
		live     *appsv1.StatefulSet
		replicas int32
		want     shape
	}{
		"new":                         {nil, 3, shape{3, 3, 3}},
		"new and asleep":              {nil, 0, shape{0, 0, 0}},
		"wakes up for the first time": {set(shape{0, 0, 0}), 3, shape{3, 3, 3}},
		"as it is":                    {set(shape{1, 1, 1}), 1, shape{1, 1, 1}},
		"is to grow":                  {set(shape{1, 1, 1}), 3, shape{1, 1, 1}},
		"grows":                       {set(shape{1, 1, 2}), 3, shape{1, 1, 2}},
		"has grown":                   {set(shape{1, 3, 3}), 3, shape{1, 3, 3}},
		"falls asleep":                {set(shape{1, 3, 3}), 0, shape{1, 3, 0}},
		"wakes up":                    {set(shape{1, 3, 0}), 3, shape{1, 3, 3}},
		"wakes up and is to grow":     {set(shape{1, 1, 0}), 3, shape{1, 1, 1}},
		"without marks":               {&appsv1.StatefulSet{}, 1, shape{1, 1, 1}},
	} {
		assert.Equal(t, test.want, shapeOf(test.live, test.replicas), name)
	}
}
