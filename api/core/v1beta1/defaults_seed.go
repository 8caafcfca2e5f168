package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// SetDefaults_Seed sets the defaults of a Seed.
func SetDefaults_Seed(seed *Seed) {
	spec := &seed.Spec
	if len(spec.Networks.IPFamilies) == 0 {
		spec.Networks.IPFamilies = []IPFamily{IPFamilyIPv4}
	}
	settings := orEmpty(&spec.Settings)
	defaultExcessCapacity(orEmpty(&settings.ExcessCapacityReservation))
	orDefault(&settings.Scheduling, SeedSettingScheduling{Visible: true})
	orDefault(&orEmpty(&orEmpty(&settings.LoadBalancerServices).ZonalIngress).Enabled, true)
	orDefault(&settings.VerticalPodAutoscaler, SeedSettingVerticalPodAutoscaler{Enabled: true})
	orDefault(&settings.PersistentVolumeClaimAutoscaler, SeedSettingPersistentVolumeClaimAutoscaler{Enabled: false})
	watchdog := orEmpty(&settings.DependencyWatchdog)
	orDefault(&watchdog.Weeder, SeedSettingDependencyWatchdogWeeder{Enabled: true})
	orDefault(&watchdog.Prober, SeedSettingDependencyWatchdogProber{Enabled: true})
	orDefault(&settings.TopologyAwareRouting, SeedSettingTopologyAwareRouting{Enabled: false})
}

// defaultExcessCapacity reserves room for one medium-sized control plane, unless the reservation is
// disabled.
func defaultExcessCapacity(reservation *SeedSettingExcessCapacityReservation) {
	if len(reservation.Configs) > 0 || (reservation.Enabled != nil && !*reservation.Enabled) {
		return
	}
	reservation.Configs = []SeedSettingExcessCapacityReservationConfig{{
		Resources: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("2"),
			corev1.ResourceMemory: resource.MustParse("6Gi"),
		},
	}}
}
