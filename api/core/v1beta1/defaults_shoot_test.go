// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/api/core/v1beta1"
)

func newShoot(workers ...v1beta1.Worker) *v1beta1.Shoot {
	return &v1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: "botany", Namespace: "garden-dev"},
		Spec:       v1beta1.ShootSpec{Provider: v1beta1.Provider{Type: "local", Workers: workers}},
	}
}

func withDefaults(shoot *v1beta1.Shoot) *v1beta1.Shoot {
	v1beta1.SetDefaults_Shoot(shoot)
	return shoot
}

func TestShootWithoutWorkersGetsNoNodeDefaults(t *testing.T) {
	shoot := withDefaults(newShoot())
	assert.Equal(t, v1beta1.ShootPurposeEvaluation, *shoot.Spec.Purpose)
	assert.Equal(t, "default-scheduler", *shoot.Spec.SchedulerName)
	assert.Equal(t, int32(400), *shoot.Spec.Kubernetes.KubeAPIServer.Requests.MaxNonMutatingInflight)
	assert.Equal(t, []v1beta1.IPFamily{v1beta1.IPFamilyIPv4}, shoot.Spec.Networking.IPFamilies)
	assert.True(t, shoot.Spec.Maintenance.AutoUpdate.KubernetesVersion)

	assert.Nil(t, shoot.Spec.Maintenance.AutoUpdate.MachineImageVersion)
	assert.Nil(t, shoot.Spec.Kubernetes.KubeAPIServer.DefaultNotReadyTolerationSeconds)
	assert.Nil(t, shoot.Spec.Kubernetes.KubeControllerManager)
	assert.Nil(t, shoot.Spec.Kubernetes.KubeScheduler)
	assert.Nil(t, shoot.Spec.Kubernetes.KubeProxy)
	assert.Nil(t, shoot.Spec.Kubernetes.Kubelet)
	assert.Nil(t, shoot.Spec.Provider.WorkersSettings)
	assert.Nil(t, shoot.Spec.SystemComponents)
}

// TestShootDefaultsSkipFieldsFromOtherObjects checks that fields that depend on other objects stay
// unset.
func TestShootDefaultsSkipFieldsFromOtherObjects(t *testing.T) {
	shoot := withDefaults(newShoot(v1beta1.Worker{Name: "a"}))
	assert.Empty(t, shoot.Spec.Kubernetes.Version)
	assert.Nil(t, shoot.Spec.Kubernetes.VerticalPodAutoscaler)
	assert.Nil(t, shoot.Spec.Kubernetes.ClusterAutoscaler)
	assert.Nil(t, shoot.Spec.Networking.Pods)
	assert.Nil(t, shoot.Spec.DNS)
	assert.Nil(t, shoot.Spec.Provider.Workers[0].Machine.Image)
	assert.Nil(t, shoot.Spec.Maintenance.AutoRotation)
	assert.Nil(t, shoot.Spec.SeedName)
}

func TestShootDefaultsPreserveSetFields(t *testing.T) {
	shoot := newShoot(v1beta1.Worker{Name: "a", MaxSurge: ptr.To(intstr.FromString("10%"))})
	shoot.Spec.Purpose = ptr.To(v1beta1.ShootPurposeProduction)
	shoot.Spec.Maintenance = &v1beta1.Maintenance{
		AutoUpdate: &v1beta1.MaintenanceAutoUpdate{KubernetesVersion: false},
		TimeWindow: &v1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"},
	}
	shoot.Spec.Kubernetes.KubeProxy = &v1beta1.KubeProxyConfig{Enabled: ptr.To(false)}
	withDefaults(shoot)
	assert.Equal(t, v1beta1.ShootPurposeProduction, *shoot.Spec.Purpose)
	assert.False(t, shoot.Spec.Maintenance.AutoUpdate.KubernetesVersion)
	assert.Equal(t, "220000+0100", shoot.Spec.Maintenance.TimeWindow.Begin)
	assert.False(t, *shoot.Spec.Kubernetes.KubeProxy.Enabled)
	assert.Equal(t, v1beta1.ProxyModeIPTables, *shoot.Spec.Kubernetes.KubeProxy.Mode)
	assert.Equal(t, "10%", shoot.Spec.Provider.Workers[0].MaxSurge.String())
}

func TestShootDefaultsAreIdempotent(t *testing.T) {
	shoot := withDefaults(newShoot(v1beta1.Worker{Name: "a"}, v1beta1.Worker{Name: "b", UpdateStrategy: ptr.To(v1beta1.AutoInPlaceUpdate)}))
	again := withDefaults(shoot.DeepCopy())
	assert.Equal(t, shoot, again)
}

func TestProtectedSeedTolerations(t *testing.T) {
	protected := v1beta1.Toleration{Key: v1beta1.SeedTaintProtected}
	for name, test := range map[string]struct {
		namespace string
		given     []v1beta1.Toleration
		want      []v1beta1.Toleration
	}{
		"project":             {namespace: "garden-dev"},
		"garden":              {namespace: "garden", want: []v1beta1.Toleration{protected}},
		"garden, given":       {namespace: "garden", given: []v1beta1.Toleration{protected}, want: []v1beta1.Toleration{protected}},
		"garden, other value": {namespace: "garden", given: []v1beta1.Toleration{{Key: protected.Key, Value: ptr.To("x")}}, want: []v1beta1.Toleration{{Key: protected.Key, Value: ptr.To("x")}, protected}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := newShoot()
			shoot.Namespace, shoot.Spec.Tolerations = test.namespace, test.given
			assert.Equal(t, test.want, withDefaults(shoot).Spec.Tolerations)
		})
	}
}

func TestWorkerDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		strategy           *v1beta1.MachineUpdateStrategy
		surge, unavailable *intstr.IntOrString
		disableHealth      bool
	}{
		"unset":           {surge: ptr.To(intstr.FromInt32(1)), unavailable: ptr.To(intstr.FromInt32(0))},
		"rolling":         {strategy: ptr.To(v1beta1.AutoRollingUpdate), surge: ptr.To(intstr.FromInt32(1)), unavailable: ptr.To(intstr.FromInt32(0))},
		"in-place":        {strategy: ptr.To(v1beta1.AutoInPlaceUpdate), surge: ptr.To(intstr.FromInt32(0)), unavailable: ptr.To(intstr.FromInt32(1)), disableHealth: true},
		"manual in-place": {strategy: ptr.To(v1beta1.ManualInPlaceUpdate), disableHealth: true},
	} {
		t.Run(name, func(t *testing.T) {
			worker := withDefaults(newShoot(v1beta1.Worker{Name: "a", UpdateStrategy: test.strategy})).Spec.Provider.Workers[0]
			assert.Equal(t, test.surge, worker.MaxSurge)
			assert.Equal(t, test.unavailable, worker.MaxUnavailable)
			assert.Equal(t, "amd64", *worker.Machine.Architecture)
			assert.Equal(t, v1beta1.CRINameContainerD, worker.CRI.Name)
			assert.True(t, worker.SystemComponents.Allow)
			assert.Equal(t, test.disableHealth, worker.MachineControllerManagerSettings != nil && *worker.MachineControllerManagerSettings.DisableHealthTimeout)
		})
	}
}

func TestNodeCIDRMaskDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		families  []v1beta1.IPFamily
		maxPods   *int32
		poolPods  *int32
		v4, v6    *int32
		givenMask *int32
		givenV6   *int32
	}{
		"default":             {v4: ptr.To[int32](24)},
		"more pods":           {maxPods: ptr.To[int32](250), v4: ptr.To[int32](23)},
		"just enough":         {maxPods: ptr.To[int32](128), v4: ptr.To[int32](24)},
		"just too many":       {maxPods: ptr.To[int32](129), v4: ptr.To[int32](23)},
		"few pods":            {maxPods: ptr.To[int32](20), v4: ptr.To[int32](26)},
		"more pods in a pool": {maxPods: ptr.To[int32](20), poolPods: ptr.To[int32](500), v4: ptr.To[int32](22)},
		"given":               {givenMask: ptr.To[int32](25), v4: ptr.To[int32](25)},
		"IPv6":                {families: []v1beta1.IPFamily{"IPv6"}, v4: ptr.To[int32](64)},
		"IPv6, own field":     {families: []v1beta1.IPFamily{"IPv6"}, givenV6: ptr.To[int32](80), v6: ptr.To[int32](80)},
		"both":                {families: []v1beta1.IPFamily{"IPv4", "IPv6"}, v4: ptr.To[int32](24), v6: ptr.To[int32](64)},
	} {
		t.Run(name, func(t *testing.T) {
			worker := v1beta1.Worker{Name: "a"}
			if test.poolPods != nil {
				worker.Kubernetes = &v1beta1.WorkerKubernetes{Kubelet: &v1beta1.KubeletConfig{MaxPods: test.poolPods}}
			}
			shoot := newShoot(worker)
			shoot.Spec.Networking = &v1beta1.Networking{IPFamilies: test.families}
			shoot.Spec.Kubernetes.Kubelet = &v1beta1.KubeletConfig{MaxPods: test.maxPods}
			shoot.Spec.Kubernetes.KubeControllerManager = &v1beta1.KubeControllerManagerConfig{
				NodeCIDRMaskSize: test.givenMask, NodeCIDRMaskSizeIPv6: test.givenV6,
			}
			config := withDefaults(shoot).Spec.Kubernetes.KubeControllerManager
			assert.Equal(t, test.v4, config.NodeCIDRMaskSize)
			assert.Equal(t, test.v6, config.NodeCIDRMaskSizeIPv6)
		})
	}
}

func TestKubeletDefaults(t *testing.T) {
	swap := map[string]bool{"NodeSwap": true}
	for name, test := range map[string]struct {
		given     v1beta1.KubeletConfig
		serialize bool
		swap      *v1beta1.MemorySwapConfiguration
	}{
		"empty":              {serialize: true},
		"one pull":           {given: v1beta1.KubeletConfig{MaxParallelImagePulls: ptr.To[int32](1)}, serialize: true},
		"several pulls":      {given: v1beta1.KubeletConfig{MaxParallelImagePulls: ptr.To[int32](2)}, serialize: false},
		"swap, but fails on": {given: v1beta1.KubeletConfig{KubernetesConfig: v1beta1.KubernetesConfig{FeatureGates: swap}}, serialize: true},
		"swap": {
			given:     v1beta1.KubeletConfig{KubernetesConfig: v1beta1.KubernetesConfig{FeatureGates: swap}, FailSwapOn: ptr.To(false)},
			serialize: true,
			swap:      &v1beta1.MemorySwapConfiguration{SwapBehavior: ptr.To(v1beta1.LimitedSwap)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool := v1beta1.Worker{Name: "a", Kubernetes: &v1beta1.WorkerKubernetes{Kubelet: test.given.DeepCopy()}}
			shoot := newShoot(pool)
			shoot.Spec.Kubernetes.Kubelet = test.given.DeepCopy()
			withDefaults(shoot)
			kubelet := shoot.Spec.Kubernetes.Kubelet
			assert.Equal(t, test.serialize, *kubelet.SerializeImagePulls)
			assert.Equal(t, test.swap, kubelet.MemorySwap)
			assert.Equal(t, 2*time.Minute, kubelet.ImageMinimumGCAge.Duration)

			poolKubelet := shoot.Spec.Provider.Workers[0].Kubernetes.Kubelet
			assert.Equal(t, test.swap, poolKubelet.MemorySwap)
			assert.Nil(t, poolKubelet.SerializeImagePulls, "settings of a pool stand as they are")
		})
	}
}

func TestShootDefaultsInExistingBlocks(t *testing.T) {
	shoot := newShoot(v1beta1.Worker{Name: "a"})
	shoot.Spec.CloudProfile = &v1beta1.CloudProfileReference{Name: "local"}
	shoot.Spec.Kubernetes.ClusterAutoscaler = &v1beta1.ClusterAutoscaler{MaxEmptyBulkDelete: ptr.To[int32](7)}
	shoot.Spec.Kubernetes.VerticalPodAutoscaler = &v1beta1.VerticalPodAutoscaler{Enabled: true}
	shoot.Spec.Maintenance = &v1beta1.Maintenance{AutoRotation: &v1beta1.MaintenanceAutoRotation{
		Credentials: &v1beta1.MaintenanceCredentialsAutoRotation{
			SSHKeypair:    &v1beta1.MaintenanceRotationConfig{},
			Observability: &v1beta1.MaintenanceRotationConfig{RotationPeriod: &metav1.Duration{}},
		},
	}}
	shoot.Spec.Addons = &v1beta1.Addons{
		NginxIngress:        &v1beta1.NginxIngress{},
		KubernetesDashboard: &v1beta1.KubernetesDashboard{Addon: v1beta1.Addon{Enabled: true}},
	}
	shoot.Spec.Provider.Workers[0].ControlPlane = &v1beta1.WorkerControlPlane{
		Exposure: &v1beta1.Exposure{Extension: &v1beta1.ExtensionExposure{}},
	}
	withDefaults(shoot)

	assert.Equal(t, "CloudProfile", shoot.Spec.CloudProfile.Kind)
	assert.Equal(t, int32(7), *shoot.Spec.Kubernetes.ClusterAutoscaler.MaxScaleDownParallelism)
	assert.Equal(t, 30*time.Minute, shoot.Spec.Kubernetes.ClusterAutoscaler.ScaleDownUnneededTime.Duration)
	assert.InDelta(t, 0.9, *shoot.Spec.Kubernetes.VerticalPodAutoscaler.TargetCPUPercentile, 0)
	rotation := shoot.Spec.Maintenance.AutoRotation.Credentials
	assert.Equal(t, 168*time.Hour, rotation.SSHKeypair.RotationPeriod.Duration)
	assert.Zero(t, rotation.Observability.RotationPeriod.Duration, "0 switches a rotation off")
	assert.Nil(t, rotation.ETCDEncryptionKey)
	assert.Equal(t, "Cluster", string(*shoot.Spec.Addons.NginxIngress.ExternalTrafficPolicy))
	assert.Equal(t, "token", *shoot.Spec.Addons.KubernetesDashboard.AuthenticationMode)
	assert.Equal(t, "local", *shoot.Spec.Provider.Workers[0].ControlPlane.Exposure.Extension.Type)
}

func TestDefaultMaintenanceTimeWindow(t *testing.T) {
	window := v1beta1.DefaultMaintenanceTimeWindow("garden-dev", "botany")
	assert.Equal(t, window, v1beta1.DefaultMaintenanceTimeWindow("garden-dev", "botany"), "the same Shoot, the same window")

	hours := map[string]bool{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"} {
		window := v1beta1.DefaultMaintenanceTimeWindow("garden-dev", name)
		begin, err := time.Parse("150405-0700", window.Begin)
		require.NoError(t, err)
		end, err := time.Parse("150405-0700", window.End)
		require.NoError(t, err)
		assert.Equal(t, time.Hour, (end.Sub(begin)+24*time.Hour)%(24*time.Hour))
		hours[window.Begin] = true
	}
	assert.Greater(t, len(hours), 8, "windows are spread over the day")
}
