package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

const (
	defaultAuditVersion          = "audit.k8s.io/v1"
	defaultAuditBatchMaxSize     = 30
	defaultAuthenticationVersion = "v1beta1"
	defaultCertificateSigning    = 48 * time.Hour
	defaultGitHubAPIURL          = "https://api.github.com"
	defaultLogLevel              = "info"
	defaultStorageCapacity       = "10Gi"
)

// SetDefaults_Garden sets the defaults of upstream's webhook, and the schema's defaults in existing
// blocks.
func SetDefaults_Garden(garden *Garden) {
	runtimeCluster, virtualCluster := &garden.Spec.RuntimeCluster, &garden.Spec.VirtualCluster
	if len(runtimeCluster.Networking.IPFamilies) == 0 {
		runtimeCluster.Networking.IPFamilies = []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4}
	}
	if settings := runtimeCluster.Settings; settings != nil && settings.VerticalPodAutoscaler != nil {
		orDefault(&settings.VerticalPodAutoscaler.Enabled, true)
	}
	defaultETCD(virtualCluster.ETCD)
	defaultKubernetes(&virtualCluster.Kubernetes)
	defaultGardener(&virtualCluster.Gardener, virtualCluster.Kubernetes.KubeAPIServer.EncryptionConfig.Provider.Type)
}

func defaultETCD(etcd *ETCD) {
	if etcd == nil {
		return
	}
	if etcd.Main != nil {
		defaultStorage(etcd.Main.Storage)
	}
	if etcd.Events != nil {
		defaultStorage(etcd.Events.Storage)
	}
}

// defaultStorage sets 10Gi in an empty block, even where a missing block means more.
func defaultStorage(storage *Storage) {
	if storage != nil {
		orDefault(&storage.Capacity, resource.MustParse(defaultStorageCapacity))
	}
}

func defaultKubernetes(kubernetes *Kubernetes) {
	apiServer := orEmpty(&kubernetes.KubeAPIServer)
	gardencorev1beta1.SetDefaults_KubeAPIServerConfig(orEmpty(&apiServer.KubeAPIServerConfig))
	defaultAuditWebhook(apiServer.AuditWebhook)
	if apiServer.Authentication != nil && apiServer.Authentication.Webhook != nil {
		orDefault(&apiServer.Authentication.Webhook.Version, defaultAuthenticationVersion)
	}
	controllerManager := orEmpty(&kubernetes.KubeControllerManager)
	orEmpty(&controllerManager.KubeControllerManagerConfig)
	orDefault(&controllerManager.CertificateSigningDuration, metav1.Duration{Duration: defaultCertificateSigning})
}

func defaultGardener(gardener *Gardener, encryption *gardencorev1beta1.EncryptionProviderType) {
	apiServer := orEmpty(&gardener.APIServer)
	// Both API servers store data in the same etcd and must encrypt it alike.
	orDefault(&orEmpty(&apiServer.EncryptionConfig).Provider.Type, *encryption)
	defaultAuditWebhook(apiServer.AuditWebhook)
	if gardener.AdmissionController != nil {
		orDefault(&gardener.AdmissionController.LogLevel, defaultLogLevel)
	}
	if gardener.ControllerManager != nil {
		orDefault(&gardener.ControllerManager.LogLevel, defaultLogLevel)
	}
	if gardener.Scheduler != nil {
		orDefault(&gardener.Scheduler.LogLevel, defaultLogLevel)
	}
	defaultDashboard(gardener.Dashboard)
}

func defaultDashboard(dashboard *GardenerDashboardConfig) {
	if dashboard == nil {
		return
	}
	orDefault(&dashboard.EnableTokenLogin, true)
	orDefault(&dashboard.LogLevel, defaultLogLevel)
	if dashboard.GitHub != nil && dashboard.GitHub.APIURL == "" {
		dashboard.GitHub.APIURL = defaultGitHubAPIURL
	}
	if dashboard.Ingress != nil {
		orDefault(&dashboard.Ingress.Enabled, true)
	}
}

func defaultAuditWebhook(webhook *AuditWebhook) {
	if webhook != nil {
		orDefault(&webhook.BatchMaxSize, defaultAuditBatchMaxSize)
		orDefault(&webhook.Version, defaultAuditVersion)
	}
}

// orDefault sets an unset field.
func orDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// orEmpty creates a block if it is missing, and returns it.
func orEmpty[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}
