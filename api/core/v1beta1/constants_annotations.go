// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Annotations that people or controllers set to request an action.
const (
	// GardenerOperation requests operations, joined by `;`. Each is executed once: the annotation
	// is removed when the operation starts. On extension objects it starts the extension's work.
	GardenerOperation = "gardener.cloud/operation"
	// GardenerMaintenanceOperation requests an operation in the next maintenance time window.
	GardenerMaintenanceOperation = "maintenance.gardener.cloud/operation"
	// GardenerTimestamp is the time at which GardenerOperation or ConfirmationDeletion was set, as
	// RFC 3339 with nanoseconds.
	GardenerTimestamp = "gardener.cloud/timestamp"
	// ConfirmationDeletion `true` allows the deletion of an object that is protected against
	// accidental deletion.
	ConfirmationDeletion = "confirmation.gardener.cloud/deletion"
	// ConfirmationForceDeletion `true` deletes a Shoot in deletion without regard to remaining
	// objects.
	ConfirmationForceDeletion = "confirmation.gardener.cloud/force-deletion"
	// DeletionConfirmedBy is the user who set ConfirmationDeletion.
	DeletionConfirmedBy = "deletion.gardener.cloud/confirmed-by"
	// GardenCreatedBy is the user who created an object.
	GardenCreatedBy = "gardener.cloud/created-by"
	// BackupEntryForceDeletion `true` deletes the backups of a BackupEntry without the grace
	// period.
	BackupEntryForceDeletion = "backupentry.core.gardener.cloud/force-deletion"
)

// Annotations of Shoots.
const (
	// ShootTasks lists tasks for the next reconciliation, joined by commas.
	ShootTasks = "shoot.gardener.cloud/tasks"
	// ShootIgnore `true` stops reconciliation, if the landscape or the namespace allows it.
	ShootIgnore = "shoot.gardener.cloud/ignore"
	// ShootSyncPeriod is the interval of reconciliation, as a duration of at least the landscape's.
	ShootSyncPeriod = "shoot.gardener.cloud/sync-period"
	// ShootSkipReadiness skips waits for readiness once.
	ShootSkipReadiness = "shoot.gardener.cloud/skip-readiness"
	// ShootSkipCleanup skips the deletion of extended APIs when the Shoot is deleted.
	ShootSkipCleanup = "shoot.gardener.cloud/skip-cleanup"
	// ShootExpirationTimestamp is the time at which the Shoot is deleted.
	ShootExpirationTimestamp = "shoot.gardener.cloud/expiration-timestamp"
	// ShootNeedsRetryOperation makes maintenance retry a failed Shoot.
	ShootNeedsRetryOperation = "maintenance.shoot.gardener.cloud/needs-retry-operation"
	// ShootLiveMigrate requests a move to another Seed without downtime.
	ShootLiveMigrate = "migration.gardener.cloud/live-migrate"
	// ShootAlphaControlPlaneScaleDownDisabled requires at least four API servers.
	ShootAlphaControlPlaneScaleDownDisabled = "alpha.control-plane.scaling.shoot.gardener.cloud/scale-down-disabled"
	// ShootUID is the UID of the Shoot, on the namespace of its control plane.
	ShootUID = "shoot.gardener.cloud/uid"
)

// Annotations of Seeds, Projects and Gardens.
const (
	// SeedEmergencyStopReconciliations `true` stops every operation on Shoots of the Seed.
	SeedEmergencyStopReconciliations = "shoot.gardener.cloud/emergency-stop-reconciliations"
	// ProjectSkipStaleCheck `true`, on the namespace, protects an unused Project from deletion.
	ProjectSkipStaleCheck = "project.gardener.cloud/skip-stale-check"
	// NamespaceProject is the UID of the Project that a namespace belongs to.
	NamespaceProject = "namespace.gardener.cloud/project"
	// NamespaceCreatedByProjectController marks namespaces that were created for their Project.
	NamespaceCreatedByProjectController = "namespace.gardener.cloud/created-by-project-controller"
	// NamespaceKeepAfterProjectDeletion `true` preserves the namespace when its Project is deleted.
	NamespaceKeepAfterProjectDeletion = "namespace.gardener.cloud/keep-after-project-deletion"
	// GenericTokenKubeconfigSecretName is the name of the Secret with the kubeconfig that reads its
	// token from a file.
	GenericTokenKubeconfigSecretName = "generic-token-kubeconfig.secret.gardener.cloud/name"
)

// Annotations that webhooks of the resource manager read.
const (
	// HighAvailabilityConfigZones lists the zones of a namespace's pods, joined by commas.
	HighAvailabilityConfigZones = "high-availability-config.resources.gardener.cloud/zones"
	// HighAvailabilityConfigFailureToleranceType is the failure tolerance of a namespace's pods:
	// empty, `node` or `zone`.
	HighAvailabilityConfigFailureToleranceType = "high-availability-config.resources.gardener.cloud/failure-tolerance-type"
	// HighAvailabilityConfigReplicas sets the number of replicas of a workload.
	HighAvailabilityConfigReplicas = "high-availability-config.resources.gardener.cloud/replicas"
)
