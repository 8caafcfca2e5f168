// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/operator/v1alpha1"
)

func TestGardenDefaults(t *testing.T) {
	garden := &v1alpha1.Garden{}
	v1alpha1.SetDefaults_Garden(garden)
	virtual := garden.Spec.VirtualCluster

	assert.Equal(t, []gardencorev1beta1.IPFamily{"IPv4"}, garden.Spec.RuntimeCluster.Networking.IPFamilies)
	assert.Equal(t, int32(400), *virtual.Kubernetes.KubeAPIServer.Requests.MaxNonMutatingInflight)
	assert.Equal(t, int32(200), *virtual.Kubernetes.KubeAPIServer.Requests.MaxMutatingInflight)
	assert.Equal(t, time.Hour, virtual.Kubernetes.KubeAPIServer.EventTTL.Duration)
	assert.Equal(t, int32(2), *virtual.Kubernetes.KubeAPIServer.Logging.Verbosity)
	assert.Equal(t, gardencorev1beta1.EncryptionProviderTypeAESCBC, *virtual.Kubernetes.KubeAPIServer.EncryptionConfig.Provider.Type)
	assert.Equal(t, 48*time.Hour, virtual.Kubernetes.KubeControllerManager.CertificateSigningDuration.Duration)
	assert.Equal(t, gardencorev1beta1.EncryptionProviderTypeAESCBC, *virtual.Gardener.APIServer.EncryptionConfig.Provider.Type)

	assert.Nil(t, garden.Spec.RuntimeCluster.Settings, "what is not there stays away")
	assert.Nil(t, virtual.ETCD)
	assert.Nil(t, virtual.Gardener.Dashboard)
	assert.Nil(t, virtual.Gardener.Scheduler)

	again := garden.DeepCopy()
	v1alpha1.SetDefaults_Garden(again)
	assert.Equal(t, garden, again)
}

func TestGardenerAPIServerEncryptsLikeKubeAPIServer(t *testing.T) {
	for name, test := range map[string]struct {
		kube, gardener, want *gardencorev1beta1.EncryptionProviderType
	}{
		"follows":   {kube: ptr.To(gardencorev1beta1.EncryptionProviderTypeSecretbox), want: ptr.To(gardencorev1beta1.EncryptionProviderTypeSecretbox)},
		"differs":   {gardener: ptr.To(gardencorev1beta1.EncryptionProviderTypeSecretbox), want: ptr.To(gardencorev1beta1.EncryptionProviderTypeSecretbox)},
		"both open": {want: ptr.To(gardencorev1beta1.EncryptionProviderTypeAESCBC)},
	} {
		t.Run(name, func(t *testing.T) {
			garden := &v1alpha1.Garden{}
			garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer = &v1alpha1.KubeAPIServerConfig{
				KubeAPIServerConfig: &gardencorev1beta1.KubeAPIServerConfig{
					EncryptionConfig: &gardencorev1beta1.EncryptionConfig{Provider: gardencorev1beta1.EncryptionProvider{Type: test.kube}},
				},
			}
			garden.Spec.VirtualCluster.Gardener.APIServer = &v1alpha1.GardenerAPIServerConfig{
				EncryptionConfig: &gardencorev1beta1.EncryptionConfig{Provider: gardencorev1beta1.EncryptionProvider{Type: test.gardener}},
			}
			v1alpha1.SetDefaults_Garden(garden)
			assert.Equal(t, test.want, garden.Spec.VirtualCluster.Gardener.APIServer.EncryptionConfig.Provider.Type)
		})
	}
}

func TestGardenDefaultsInExistingBlocks(t *testing.T) {
	garden := &v1alpha1.Garden{}
	garden.Spec.RuntimeCluster.Settings = &v1alpha1.Settings{VerticalPodAutoscaler: &v1alpha1.SettingVerticalPodAutoscaler{}}
	virtual := &garden.Spec.VirtualCluster
	virtual.ETCD = &v1alpha1.ETCD{Main: &v1alpha1.ETCDMain{Storage: &v1alpha1.Storage{}}, Events: &v1alpha1.ETCDEvents{}}
	virtual.Kubernetes.KubeAPIServer = &v1alpha1.KubeAPIServerConfig{
		AuditWebhook:   &v1alpha1.AuditWebhook{},
		Authentication: &v1alpha1.Authentication{Webhook: &v1alpha1.AuthenticationWebhook{}},
	}
	virtual.Gardener = v1alpha1.Gardener{
		AdmissionController: &v1alpha1.GardenerAdmissionControllerConfig{},
		ControllerManager:   &v1alpha1.GardenerControllerManagerConfig{},
		Scheduler:           &v1alpha1.GardenerSchedulerConfig{LogLevel: ptr.To("debug")},
		Dashboard:           &v1alpha1.GardenerDashboardConfig{GitHub: &v1alpha1.DashboardGitHub{}, Ingress: &v1alpha1.DashboardIngress{}},
	}
	v1alpha1.SetDefaults_Garden(garden)

	assert.True(t, *garden.Spec.RuntimeCluster.Settings.VerticalPodAutoscaler.Enabled)
	assert.Equal(t, "10Gi", virtual.ETCD.Main.Storage.Capacity.String())
	assert.Nil(t, virtual.ETCD.Events.Storage)
	assert.Equal(t, int32(30), *virtual.Kubernetes.KubeAPIServer.AuditWebhook.BatchMaxSize)
	assert.Equal(t, "audit.k8s.io/v1", *virtual.Kubernetes.KubeAPIServer.AuditWebhook.Version)
	assert.Equal(t, "v1beta1", *virtual.Kubernetes.KubeAPIServer.Authentication.Webhook.Version)
	assert.Equal(t, "info", *virtual.Gardener.AdmissionController.LogLevel)
	assert.Equal(t, "info", *virtual.Gardener.ControllerManager.LogLevel)
	assert.Equal(t, "debug", *virtual.Gardener.Scheduler.LogLevel)
	assert.True(t, *virtual.Gardener.Dashboard.EnableTokenLogin)
	assert.Equal(t, "https://api.github.com", virtual.Gardener.Dashboard.GitHub.APIURL)
	assert.True(t, *virtual.Gardener.Dashboard.Ingress.Enabled)
}
