// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

const (
	defaultAuditVersion               = "audit.k8s.io/v1"
	defaultAuditBatchMaxSize          = 30
	defaultAuthenticationVersion      = "v1beta1"
	defaultCertificateSigningDuration = 48 * time.Hour
	defaultGitHubAPIURL               = "https://api.github.com"
	defaultLogLevel                   = "info"
	defaultStorageCapacity            = "10Gi"
)

// SetDefaults_Garden sets the defaults of upstream's webhook, and the schema's defaults in existing
// blocks.
func SetDefaults_Garden(garden *Garden) {
	runtimeCluster, virtualCluster := &garden.Spec.RuntimeCluster, &garden.Spec.VirtualCluster
	if len(runtimeCluster.Networking.IPFamilies) == 0 {
		runtimeCluster.Networking.IPFamilies = []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4}
	}
	if settings := runtimeCluster.Settings; settings != nil && settings.VerticalPodAutoscaler != nil {
		setDefault(&settings.VerticalPodAutoscaler.Enabled, true)
	}
	setETCDDefaults(virtualCluster.ETCD)
	setKubernetesDefaults(&virtualCluster.Kubernetes)
	setGardenerDefaults(&virtualCluster.Gardener, virtualCluster.Kubernetes.KubeAPIServer.EncryptionConfig.Provider.Type)
}

func setETCDDefaults(etcd *ETCD) {
	if etcd == nil {
		return
	}
	if etcd.Main != nil {
		setStorageDefaults(etcd.Main.Storage)
	}
	if etcd.Events != nil {
		setStorageDefaults(etcd.Events.Storage)
	}
}

// setStorageDefaults sets 10Gi in an empty block, even where a missing block means more.
func setStorageDefaults(storage *Storage) {
	if storage != nil {
		setDefault(&storage.Capacity, resource.MustParse(defaultStorageCapacity))
	}
}

func setKubernetesDefaults(kubernetes *Kubernetes) {
	apiServer := ensureBlock(&kubernetes.KubeAPIServer)
	gardencorev1beta1.SetDefaults_KubeAPIServerConfig(ensureBlock(&apiServer.KubeAPIServerConfig))
	setAuditWebhookDefaults(apiServer.AuditWebhook)
	if apiServer.Authentication != nil && apiServer.Authentication.Webhook != nil {
		setDefault(&apiServer.Authentication.Webhook.Version, defaultAuthenticationVersion)
	}
	controllerManager := ensureBlock(&kubernetes.KubeControllerManager)
	ensureBlock(&controllerManager.KubeControllerManagerConfig)
	setDefault(&controllerManager.CertificateSigningDuration, metav1.Duration{Duration: defaultCertificateSigningDuration})
}

func setGardenerDefaults(gardener *Gardener, encryption *gardencorev1beta1.EncryptionProviderType) {
	apiServer := ensureBlock(&gardener.APIServer)
	// Both API servers store data in the same etcd and must encrypt it alike.
	setDefault(&ensureBlock(&apiServer.EncryptionConfig).Provider.Type, *encryption)
	setAuditWebhookDefaults(apiServer.AuditWebhook)
	if gardener.AdmissionController != nil {
		setDefault(&gardener.AdmissionController.LogLevel, defaultLogLevel)
	}
	if gardener.ControllerManager != nil {
		setDefault(&gardener.ControllerManager.LogLevel, defaultLogLevel)
	}
	if gardener.Scheduler != nil {
		setDefault(&gardener.Scheduler.LogLevel, defaultLogLevel)
	}
	setDashboardDefaults(gardener.Dashboard)
}

func setDashboardDefaults(dashboard *GardenerDashboardConfig) {
	if dashboard == nil {
		return
	}
	setDefault(&dashboard.EnableTokenLogin, true)
	setDefault(&dashboard.LogLevel, defaultLogLevel)
	if dashboard.GitHub != nil && dashboard.GitHub.APIURL == "" {
		dashboard.GitHub.APIURL = defaultGitHubAPIURL
	}
	if dashboard.Ingress != nil {
		setDefault(&dashboard.Ingress.Enabled, true)
	}
}

func setAuditWebhookDefaults(webhook *AuditWebhook) {
	if webhook != nil {
		setDefault(&webhook.BatchMaxSize, defaultAuditBatchMaxSize)
		setDefault(&webhook.Version, defaultAuditVersion)
	}
}

// setDefault sets an unset field.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// ensureBlock creates a block if it is missing, and returns it.
func ensureBlock[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}
