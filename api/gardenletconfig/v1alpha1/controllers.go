// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Controllers configures the controllers of a gardenlet.
type Controllers struct {
	// Timeout of the initial cache sync. Default: 2m.
	CacheSyncTimeout               *metav1.Duration         `json:"cacheSyncTimeout,omitempty"`
	BackupBucket                   *Workers                 `json:"backupBucket,omitempty"`
	BackupEntry                    *BackupEntryController   `json:"backupEntry,omitempty"`
	Bastion                        *Workers                 `json:"bastion,omitempty"`
	ControllerInstallation         *Workers                 `json:"controllerInstallation,omitempty"`
	ControllerInstallationCare     *PeriodicWorkers         `json:"controllerInstallationCare,omitempty"`
	ControllerInstallationRequired *Workers                 `json:"controllerInstallationRequired,omitempty"`
	Gardenlet                      *Period                  `json:"gardenlet,omitempty"`
	Seed                           *SeedController          `json:"seed,omitempty"`
	SeedCare                       *SeedCareController      `json:"seedCare,omitempty"`
	Shoot                          *ShootController         `json:"shoot,omitempty"`
	ShootCare                      *ShootCareController     `json:"shootCare,omitempty"`
	ShootState                     *PeriodicWorkers         `json:"shootState,omitempty"`
	ShootStatus                    *Workers                 `json:"shootStatus,omitempty"`
	NetworkPolicy                  *NetworkPolicyController `json:"networkPolicy,omitempty"`
	ManagedSeed                    *ManagedSeedController   `json:"managedSeed,omitempty"`
	TokenRequestor                 *Workers                 `json:"tokenRequestor,omitempty"`
	TokenRequestorWorkloadIdentity *WorkloadIdentities      `json:"tokenRequestorWorkloadIdentity,omitempty"`
	VPAEvictionRequirements        *Workers                 `json:"vpaEvictionRequirements,omitempty"`
}

// Workers limits the objects that a controller reconciles concurrently.
type Workers struct {
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// Period is the interval at which a controller reconciles an object.
type Period struct {
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// PeriodicWorkers is Workers with a Period.
type PeriodicWorkers struct {
	Workers `json:",inline"`
	Period  `json:",inline"`
}

// BackupEntryController configures the controller that removes backups of deleted Shoots.
type BackupEntryController struct {
	Workers `json:",inline"`
	// Hours for which the backup of a deleted Shoot is retained. Default: 0.
	DeletionGracePeriodHours *int `json:"deletionGracePeriodHours,omitempty"`
	// Purposes of Shoots that the grace period applies to; backups of other Shoots are deleted at
	// once.
	DeletionGracePeriodShootPurposes []gardencorev1beta1.ShootPurpose `json:"deletionGracePeriodShootPurposes,omitempty"`
}

// SeedController configures the controller that renews the Lease of the Seed.
type SeedController struct {
	Period                   `json:",inline"`
	LeaseResyncSeconds       *int32 `json:"leaseResyncSeconds,omitempty"`
	LeaseResyncMissThreshold *int32 `json:"leaseResyncMissThreshold,omitempty"`
}

// SeedCareController configures health checks of the Seed.
type SeedCareController struct {
	Period              `json:",inline"`
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
}

// ShootController configures the controller that reconciles Shoots.
type ShootController struct {
	PeriodicWorkers            `json:",inline"`
	ProgressReportPeriod       *metav1.Duration `json:"progressReportPeriod,omitempty"`
	ReconcileInMaintenanceOnly *bool            `json:"reconcileInMaintenanceOnly,omitempty"`
	RespectSyncPeriodOverwrite *bool            `json:"respectSyncPeriodOverwrite,omitempty"`
	RetryDuration              *metav1.Duration `json:"retryDuration,omitempty"`
	// TTL of DNS records in seconds. Default: 120.
	DNSEntryTTLSeconds *int64 `json:"dnsEntryTTLSeconds,omitempty"`
}

// ShootCareController configures health checks of Shoots.
type ShootCareController struct {
	PeriodicWorkers                     `json:",inline"`
	StaleExtensionHealthChecks          *StaleExtensionHealthChecks `json:"staleExtensionHealthChecks,omitempty"`
	ManagedResourceProgressingThreshold *metav1.Duration            `json:"managedResourceProgressingThreshold,omitempty"`
	ConditionThresholds                 []ConditionThreshold        `json:"conditionThresholds,omitempty"`
	WebhookRemediatorEnabled            *bool                       `json:"webhookRemediatorEnabled,omitempty"`
}

// StaleExtensionHealthChecks defines when a report of an extension is too old.
type StaleExtensionHealthChecks struct {
	Enabled   bool             `json:"enabled"`
	Threshold *metav1.Duration `json:"threshold,omitempty"`
}

// ConditionThreshold is the time for which a failed check leaves a condition Progressing.
type ConditionThreshold struct {
	Type     string          `json:"type"`
	Duration metav1.Duration `json:"duration"`
}

// NetworkPolicyController configures the controller that creates NetworkPolicies.
type NetworkPolicyController struct {
	Workers                      `json:",inline"`
	AdditionalNamespaceSelectors []metav1.LabelSelector `json:"additionalNamespaceSelectors,omitempty"`
}

// ManagedSeedController configures the controller that installs gardenlets in Shoots.
type ManagedSeedController struct {
	PeriodicWorkers  `json:",inline"`
	WaitSyncPeriod   *metav1.Duration `json:"waitSyncPeriod,omitempty"`
	SyncJitterPeriod *metav1.Duration `json:"syncJitterPeriod,omitempty"`
	JitterUpdates    *bool            `json:"jitterUpdates,omitempty"`
}

// WorkloadIdentities configures the controller that requests tokens of WorkloadIdentities.
type WorkloadIdentities struct {
	Workers `json:",inline"`
	// Validity of the tokens, as a number of nanoseconds or text such as 6h. Default: 6h.
	TokenExpirationDuration any `json:"tokenExpirationDuration,omitempty"`
}
