// SPDX-License-Identifier: Apache-2.0

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
	settings := ensureBlock(&spec.Settings)
	setExcessCapacityDefaults(ensureBlock(&settings.ExcessCapacityReservation))
	setDefault(&settings.Scheduling, SeedSettingScheduling{Visible: true})
	setDefault(&ensureBlock(&ensureBlock(&settings.LoadBalancerServices).ZonalIngress).Enabled, true)
	setDefault(&settings.VerticalPodAutoscaler, SeedSettingVerticalPodAutoscaler{Enabled: true})
	setDefault(&settings.PersistentVolumeClaimAutoscaler, SeedSettingPersistentVolumeClaimAutoscaler{Enabled: false})
	watchdog := ensureBlock(&settings.DependencyWatchdog)
	setDefault(&watchdog.Weeder, SeedSettingDependencyWatchdogWeeder{Enabled: true})
	setDefault(&watchdog.Prober, SeedSettingDependencyWatchdogProber{Enabled: true})
	setDefault(&settings.TopologyAwareRouting, SeedSettingTopologyAwareRouting{Enabled: false})
}

// setExcessCapacityDefaults reserves room for one medium-sized control plane, unless the
// reservation is disabled.
func setExcessCapacityDefaults(reservation *SeedSettingExcessCapacityReservation) {
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
