// SPDX-License-Identifier: Apache-2.0

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

	defaultMaxPods                = 110
	defaultIPv6NodeCIDRMaskSize   = 64
	defaultTolerationSeconds      = 300
	defaultRotationPeriod         = 7 * 24 * time.Hour
	defaultNodeMonitorGracePeriod = 40 * time.Second
)

// SetDefaults_Shoot sets the defaults of a Shoot that do not depend on other objects. Versions,
// machine images, networks, domains and VPA come from the CloudProfile, the Seed and the
// landscape's admission.
//
// Upstream chooses the maintenance time window at random. Here it is derived from namespace and
// name, so that the same declaration always means the same Shoot.
func SetDefaults_Shoot(shoot *Shoot) {
	spec := &shoot.Spec
	setDefault(&spec.Purpose, ShootPurposeEvaluation)
	setDefault(&spec.SchedulerName, DefaultSchedulerName)
	if spec.CloudProfile != nil && spec.CloudProfile.Kind == "" {
		spec.CloudProfile.Kind = CloudProfileKind
	}
	if shoot.Namespace == GardenNamespace {
		// Clusters of the landscape itself may use protected Seeds.
		spec.Tolerations = addToleration(spec.Tolerations, SeedTaintProtected)
	}
	networking := ensureBlock(&spec.Networking)
	if len(networking.IPFamilies) == 0 {
		networking.IPFamilies = []IPFamily{IPFamilyIPv4}
	}
	SetDefaults_KubeAPIServerConfig(ensureBlock(&spec.Kubernetes.KubeAPIServer))
	if vpa := spec.Kubernetes.VerticalPodAutoscaler; vpa != nil {
		setVerticalPodAutoscalerDefaults(vpa)
	}
	if autoscaler := spec.Kubernetes.ClusterAutoscaler; autoscaler != nil {
		setClusterAutoscalerDefaults(autoscaler)
	}
	if spec.Addons != nil && spec.Addons.NginxIngress != nil {
		setDefault(&spec.Addons.NginxIngress.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	setMaintenanceDefaults(shoot)
	for i := range spec.Provider.Workers {
		setWorkerDefaults(&spec.Provider.Workers[i], spec.Provider.Type)
	}
	if len(spec.Provider.Workers) > 0 {
		setDefaultsOfShootWithWorkers(spec)
	} else {
		setExistingBlockDefaults(spec)
	}
}

// setDefaultsOfShootWithWorkers sets the defaults that apply only to clusters with workers.
func setDefaultsOfShootWithWorkers(spec *ShootSpec) {
	apiServer := spec.Kubernetes.KubeAPIServer
	setDefault(&apiServer.DefaultNotReadyTolerationSeconds, defaultTolerationSeconds)
	setDefault(&apiServer.DefaultUnreachableTolerationSeconds, defaultTolerationSeconds)

	controllerManager := ensureBlock(&spec.Kubernetes.KubeControllerManager)
	setNodeCIDRMaskDefaults(controllerManager, spec)
	setDefaultDuration(&controllerManager.NodeMonitorGracePeriod, defaultNodeMonitorGracePeriod)

	setDefault(&ensureBlock(&spec.Kubernetes.KubeScheduler).Profile, SchedulingProfileBalanced)
	ensureBlock(&spec.Kubernetes.KubeProxy)
	ensureBlock(&ensureBlock(&ensureBlock(&spec.SystemComponents).CoreDNS).Autoscaling)
	setExistingBlockDefaults(spec)
	setShootKubeletDefaults(ensureBlock(&spec.Kubernetes.Kubelet))

	if spec.Addons != nil && spec.Addons.KubernetesDashboard != nil && spec.Addons.KubernetesDashboard.Enabled {
		setDefault(&spec.Addons.KubernetesDashboard.AuthenticationMode, KubernetesDashboardAuthModeToken)
	}
	setDefault(&spec.Maintenance.AutoUpdate.MachineImageVersion, true)
	setDefault(&ensureBlock(&spec.Provider.WorkersSettings).SSHAccess, SSHAccess{Enabled: true})
}

// setExistingBlockDefaults sets defaults in existing blocks, like the schema's own defaults.
func setExistingBlockDefaults(spec *ShootSpec) {
	if proxy := spec.Kubernetes.KubeProxy; proxy != nil {
		setDefault(&proxy.Mode, ProxyModeIPTables)
		setDefault(&proxy.Enabled, true)
	}
	if components := spec.SystemComponents; components != nil && components.CoreDNS != nil {
		if autoscaling := components.CoreDNS.Autoscaling; autoscaling != nil && autoscaling.Mode == "" {
			autoscaling.Mode = CoreDNSAutoscalingModeHorizontal
		}
	}
}

func setMaintenanceDefaults(shoot *Shoot) {
	maintenance := ensureBlock(&shoot.Spec.Maintenance)
	setDefault(&maintenance.AutoUpdate, MaintenanceAutoUpdate{KubernetesVersion: true})
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
			setDefaultDuration(&rotation.RotationPeriod, defaultRotationPeriod)
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

func setWorkerDefaults(worker *Worker, provider string) {
	setDefault(&worker.Machine.Architecture, ArchitectureAMD64)
	setDefault(&worker.CRI, CRI{Name: CRINameContainerD})
	setDefault(&worker.SystemComponents, WorkerSystemComponents{Allow: true})
	setDefault(&worker.UpdateStrategy, AutoRollingUpdate)
	switch *worker.UpdateStrategy {
	case AutoRollingUpdate:
		setDefault(&worker.MaxSurge, intstr.FromInt32(1))
		setDefault(&worker.MaxUnavailable, intstr.FromInt32(0))
	case AutoInPlaceUpdate:
		setDefault(&worker.MaxSurge, intstr.FromInt32(0))
		setDefault(&worker.MaxUnavailable, intstr.FromInt32(1))
	}
	if IsUpdateStrategyInPlace(worker.UpdateStrategy) {
		setDefault(&ensureBlock(&worker.MachineControllerManagerSettings).DisableHealthTimeout, true)
	}
	if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
		setSwapDefaults(worker.Kubernetes.Kubelet)
	}
	if controlPlane := worker.ControlPlane; controlPlane != nil && controlPlane.Exposure != nil && controlPlane.Exposure.Extension != nil {
		setDefault(&controlPlane.Exposure.Extension.Type, provider)
	}
}

// setNodeCIDRMaskDefaults gives each node room for twice its pods, so that addresses are not reused
// at once.
func setNodeCIDRMaskDefaults(config *KubeControllerManagerConfig, spec *ShootSpec) {
	families := spec.Networking.IPFamilies
	switch {
	case IsIPv6SingleStack(families):
		// Either field may hold the mask of the only family.
		if config.NodeCIDRMaskSizeIPv6 == nil {
			setDefault(&config.NodeCIDRMaskSize, defaultIPv6NodeCIDRMaskSize)
		}
	case IsDualStack(families):
		setDefault(&config.NodeCIDRMaskSizeIPv6, defaultIPv6NodeCIDRMaskSize)
		setDefault(&config.NodeCIDRMaskSize, nodeCIDRMaskSize(maxPodsPerNode(spec)))
	default:
		setDefault(&config.NodeCIDRMaskSize, nodeCIDRMaskSize(maxPodsPerNode(spec)))
	}
}

// nodeCIDRMaskSize returns the longest IPv4 prefix with twice as many addresses as pods.
func nodeCIDRMaskSize(maxPods int32) int32 {
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
