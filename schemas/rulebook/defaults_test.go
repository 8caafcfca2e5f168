// SPDX-License-Identifier: Apache-2.0

package rulebook

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExplainDefaults checks the defaults of definitions and functions for various kinds.
func TestExplainDefaults(t *testing.T) {
	for field, want := range map[string]any{
		"ControllerRegistration.spec.deployment.policy":                  "OnDemand",
		"ControllerRegistration.spec.resources.primary":                  true,
		"ControllerRegistration.spec.resources.clusterCompatibility":     []any{"shoot"},
		"ControllerRegistration.spec.resources.reconcileTimeout":         "3m0s",
		"ControllerRegistration.spec.resources.lifecycle.reconcile":      "AfterKubeAPIServer",
		"ControllerRegistration.spec.resources.lifecycle.delete":         "BeforeKubeAPIServer",
		"ControllerRegistration.spec.resources.lifecycle.migrate":        "BeforeKubeAPIServer",
		"ControllerRegistration.spec.resources.continuousEndpointUpdate": true,
		"ManagedSeed.spec.gardenlet.bootstrap":                           "BootstrapToken",
		"ManagedSeed.spec.gardenlet.mergeWithParent":                     true,
		"ManagedSeed.spec.gardenlet.deployment.replicaCount":             int64(2),
		"ManagedSeed.spec.gardenlet.deployment.image.pullPolicy":         "IfNotPresent",
		"ManagedSeedSet.spec.replicas":                                   int64(1),
		"ManagedSeedSet.spec.updateStrategy.type":                        "RollingUpdate",
		"ManagedSeedSet.spec.updateStrategy.rollingUpdate.partition":     int64(0),
		"Gardenlet.spec.deployment.enableHealthProbes":                   true,
		"Gardenlet.spec.deployment.revisionHistoryLimit":                 int64(2),
		"CloudProfile.spec.machineImages.updateStrategy":                 "major",
		"CloudProfile.spec.machineTypes.architecture":                    "amd64",
		"NamespacedCloudProfile.spec.machineTypes.usable":                true,
		"NamespacedCloudProfile.spec.volumeTypes.usable":                 true,
		"NamespacedCloudProfile.spec.machineImages.updateStrategy":       nil,
		// default: namespace of the binding, as documented
		"SecretBinding.secretRef.namespace":                                  nil,
		"Shoot.spec.provider.workers.machine.architecture":                   "amd64",
		"Shoot.spec.kubernetes.kubeControllerManager.nodeMonitorGracePeriod": "40s",
		"Shoot.spec.kubernetes.kubelet.imageGCHighThresholdPercent":          int64(50),
		"Shoot.spec.kubernetes.clusterAutoscaler.scanInterval":               "10s",
		"Shoot.spec.kubernetes.verticalPodAutoscaler.evictionTolerance":      0.5,
		"Seed.spec.settings.dependencyWatchdog.weeder.enabled":               true,
		"Seed.spec.settings.topologyAwareRouting.enabled":                    false,
		// parents of a default have no default themselves
		"Shoot.spec.provider":                                   nil,
		"Shoot.spec.provider.workers":                           nil,
		"Seed.spec.networks":                                    nil,
		"Seed.spec.networks.ipFamilies":                         []any{"IPv4"},
		"Garden.spec.virtualCluster.etcd.main.storage.capacity": "10Gi",
		"Garden.spec.virtualCluster.kubernetes.kubeControllerManager.certificateSigningDuration": "48h",
		"Project.spec.dualApprovalForDeletion.includeServiceAccounts":                            true,
	} {
		t.Run(field, func(t *testing.T) {
			e, err := Explain(field)
			require.NoError(t, err)
			assert.EqualValues(t, want, e.Default)
		})
	}
}
