package v1beta1

import (
	"crypto/sha256"
	"fmt"
	"math/bits"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// DefaultSchedulerName is the default scheduler of Shoots.
	DefaultSchedulerName = "default-scheduler"
	// CloudProfileKind is the kind of profiles for the whole landscape.
	CloudProfileKind = "CloudProfile"
	// NamespacedCloudProfileKind is the kind of profiles for one Project.
	NamespacedCloudProfileKind = "NamespacedCloudProfile"

	defaultMaxPods           = 110
	defaultIPv6NodeMask      = 64
	defaultTolerationSeconds = 300
	defaultRotationPeriod    = 7 * 24 * time.Hour
	defaultNodeMonitorGrace  = 40 * time.Second
)

// SetDefaults_Shoot sets the defaults of a Shoot that do not depend on other objects. Versions,
// machine images, networks, domains and VPA come from the CloudProfile, the Seed and the
// landscape's admission.
//
// Upstream chooses the maintenance time window at random. Here it is derived from namespace and
// name, so that the same declaration always means the same Shoot.
func SetDefaults_Shoot(shoot *Shoot) {
	spec := &shoot.Spec
	orDefault(&spec.Purpose, ShootPurposeEvaluation)
	orDefault(&spec.SchedulerName, DefaultSchedulerName)
	if spec.CloudProfile != nil && spec.CloudProfile.Kind == "" {
		spec.CloudProfile.Kind = CloudProfileKind
	}
	if shoot.Namespace == GardenNamespace {
		// Clusters of the landscape itself may use protected Seeds.
		spec.Tolerations = withToleration(spec.Tolerations, SeedTaintProtected)
	}
	networking := orEmpty(&spec.Networking)
	if len(networking.IPFamilies) == 0 {
		networking.IPFamilies = []IPFamily{IPFamilyIPv4}
	}
	SetDefaults_KubeAPIServerConfig(orEmpty(&spec.Kubernetes.KubeAPIServer))
	if vpa := spec.Kubernetes.VerticalPodAutoscaler; vpa != nil {
		defaultVerticalPodAutoscaler(vpa)
	}
	if autoscaler := spec.Kubernetes.ClusterAutoscaler; autoscaler != nil {
		defaultClusterAutoscaler(autoscaler)
	}
	if spec.Addons != nil && spec.Addons.NginxIngress != nil {
		orDefault(&spec.Addons.NginxIngress.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	defaultMaintenance(shoot)
	for i := range spec.Provider.Workers {
		defaultWorker(&spec.Provider.Workers[i], spec.Provider.Type)
	}
	if len(spec.Provider.Workers) > 0 {
		defaultWithWorkers(spec)
	} else {
		defaultPresentBlocks(spec)
	}
}

// defaultWithWorkers sets the defaults that apply only to clusters with workers.
func defaultWithWorkers(spec *ShootSpec) {
	apiServer := spec.Kubernetes.KubeAPIServer
	orDefault(&apiServer.DefaultNotReadyTolerationSeconds, defaultTolerationSeconds)
	orDefault(&apiServer.DefaultUnreachableTolerationSeconds, defaultTolerationSeconds)

	controllerManager := orEmpty(&spec.Kubernetes.KubeControllerManager)
	defaultNodeMasks(controllerManager, spec)
	orDuration(&controllerManager.NodeMonitorGracePeriod, defaultNodeMonitorGrace)

	orDefault(&orEmpty(&spec.Kubernetes.KubeScheduler).Profile, SchedulingProfileBalanced)
	orEmpty(&spec.Kubernetes.KubeProxy)
	orEmpty(&orEmpty(&orEmpty(&spec.SystemComponents).CoreDNS).Autoscaling)
	defaultPresentBlocks(spec)
	defaultShootKubelet(orEmpty(&spec.Kubernetes.Kubelet))

	if spec.Addons != nil && spec.Addons.KubernetesDashboard != nil && spec.Addons.KubernetesDashboard.Enabled {
		orDefault(&spec.Addons.KubernetesDashboard.AuthenticationMode, KubernetesDashboardAuthModeToken)
	}
	orDefault(&spec.Maintenance.AutoUpdate.MachineImageVersion, true)
	orDefault(&orEmpty(&spec.Provider.WorkersSettings).SSHAccess, SSHAccess{Enabled: true})
}

// defaultPresentBlocks sets defaults in existing blocks, like the schema's own defaults.
func defaultPresentBlocks(spec *ShootSpec) {
	if proxy := spec.Kubernetes.KubeProxy; proxy != nil {
		orDefault(&proxy.Mode, ProxyModeIPTables)
		orDefault(&proxy.Enabled, true)
	}
	if components := spec.SystemComponents; components != nil && components.CoreDNS != nil {
		if autoscaling := components.CoreDNS.Autoscaling; autoscaling != nil && autoscaling.Mode == "" {
			autoscaling.Mode = CoreDNSAutoscalingModeHorizontal
		}
	}
}

func defaultMaintenance(shoot *Shoot) {
	maintenance := orEmpty(&shoot.Spec.Maintenance)
	orDefault(&maintenance.AutoUpdate, MaintenanceAutoUpdate{KubernetesVersion: true})
	if maintenance.TimeWindow == nil {
		window := DefaultMaintenanceTimeWindow(shoot.Namespace, shoot.Name)
		maintenance.TimeWindow = &window
	}
	if maintenance.AutoRotation == nil || maintenance.AutoRotation.Credentials == nil {
		return
	}
	credentials := maintenance.AutoRotation.Credentials
	for _, rotation := range []*MaintenanceRotationConfig{
		credentials.Observability, credentials.SSHKeypair, credentials.ETCDEncryptionKey,
	} {
		if rotation != nil {
			orDuration(&rotation.RotationPeriod, defaultRotationPeriod)
		}
	}
}

// DefaultMaintenanceTimeWindow returns the default window of a Shoot: one hour, starting at a full
// hour (UTC). It spreads Shoots evenly over the day and never changes for a Shoot.
func DefaultMaintenanceTimeWindow(namespace, name string) MaintenanceTimeWindow {
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	hour := (int(sum[0])<<8 | int(sum[1])) % 24
	return MaintenanceTimeWindow{
		Begin: fmt.Sprintf("%02d0000+0000", hour),
		End:   fmt.Sprintf("%02d0000+0000", (hour+1)%24),
	}
}

func defaultWorker(worker *Worker, provider string) {
	orDefault(&worker.Machine.Architecture, ArchitectureAMD64)
	orDefault(&worker.CRI, CRI{Name: CRINameContainerD})
	orDefault(&worker.SystemComponents, WorkerSystemComponents{Allow: true})
	orDefault(&worker.UpdateStrategy, AutoRollingUpdate)
	switch *worker.UpdateStrategy {
	case AutoRollingUpdate:
		orDefault(&worker.MaxSurge, intstr.FromInt32(1))
		orDefault(&worker.MaxUnavailable, intstr.FromInt32(0))
	case AutoInPlaceUpdate:
		orDefault(&worker.MaxSurge, intstr.FromInt32(0))
		orDefault(&worker.MaxUnavailable, intstr.FromInt32(1))
	}
	if IsUpdateStrategyInPlace(worker.UpdateStrategy) {
		orDefault(&orEmpty(&worker.MachineControllerManagerSettings).DisableHealthTimeout, true)
	}
	if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
		defaultSwap(worker.Kubernetes.Kubelet)
	}
	if controlPlane := worker.ControlPlane; controlPlane != nil && controlPlane.Exposure != nil && controlPlane.Exposure.Extension != nil {
		orDefault(&controlPlane.Exposure.Extension.Type, provider)
	}
}

// defaultNodeMasks gives each node room for twice its pods, so that addresses are not reused at
// once.
func defaultNodeMasks(config *KubeControllerManagerConfig, spec *ShootSpec) {
	families := spec.Networking.IPFamilies
	switch {
	case IsIPv6SingleStack(families):
		// Either field may hold the mask of the only family.
		if config.NodeCIDRMaskSizeIPv6 == nil {
			orDefault(&config.NodeCIDRMaskSize, defaultIPv6NodeMask)
		}
	case IsDualStack(families):
		orDefault(&config.NodeCIDRMaskSizeIPv6, defaultIPv6NodeMask)
		orDefault(&config.NodeCIDRMaskSize, nodeMask(maxPodsPerNode(spec)))
	default:
		orDefault(&config.NodeCIDRMaskSize, nodeMask(maxPodsPerNode(spec)))
	}
}

// nodeMask returns the longest IPv4 prefix with twice as many addresses as pods.
func nodeMask(maxPods int32) int32 {
	if maxPods <= 0 {
		return 32
	}
	return 32 - int32(bits.Len32(uint32(maxPods)*2-1))
}

func maxPodsPerNode(spec *ShootSpec) int32 {
	maxPods := int32(defaultMaxPods)
	if kubelet := spec.Kubernetes.Kubelet; kubelet != nil && kubelet.MaxPods != nil {
		maxPods = *kubelet.MaxPods
	}
	for _, worker := range spec.Provider.Workers {
		if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil && worker.Kubernetes.Kubelet.MaxPods != nil {
			maxPods = max(maxPods, *worker.Kubernetes.Kubelet.MaxPods)
		}
	}
	return maxPods
}
