// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Condition types of a Shoot.
const (
	// ShootAPIServerAvailable reports whether the API server answers.
	ShootAPIServerAvailable ConditionType = "APIServerAvailable"
	// ShootControlPlaneHealthy reports whether the components of the control plane are healthy.
	ShootControlPlaneHealthy ConditionType = "ControlPlaneHealthy"
	// ShootObservabilityComponentsHealthy reports whether monitoring and logging are healthy.
	ShootObservabilityComponentsHealthy ConditionType = ObservabilityComponentsHealthy
	// ShootEveryNodeReady reports whether every node exists, is ready and is up to date.
	ShootEveryNodeReady ConditionType = "EveryNodeReady"
	// ShootSystemComponentsHealthy reports whether the system components in the cluster are
	// healthy.
	ShootSystemComponentsHealthy ConditionType = "SystemComponentsHealthy"
	// ShootBackupBucketsReady reports whether the backup bucket of a self-hosted Shoot is ready.
	ShootBackupBucketsReady ConditionType = "BackupBucketsReady"
	// ObservabilityComponentsHealthy reports whether monitoring and logging are healthy, on Gardens
	// and Shoots.
	ObservabilityComponentsHealthy ConditionType = "ObservabilityComponentsHealthy"
)

// Constraint types of a Shoot. The first two always exist, the others only while they are not True.
const (
	// ShootHibernationPossible reports whether the Shoot can be hibernated.
	ShootHibernationPossible ConditionType = "HibernationPossible"
	// ShootMaintenancePreconditionsSatisfied reports whether maintenance can take place.
	ShootMaintenancePreconditionsSatisfied ConditionType = "MaintenancePreconditionsSatisfied"
	// ShootCACertificateValiditiesAcceptable reports whether the certificate authorities are valid
	// for long enough.
	ShootCACertificateValiditiesAcceptable ConditionType = "CACertificateValiditiesAcceptable"
	// ShootCRDsWithProblematicConversionWebhooks reports whether CustomResourceDefinitions in the
	// Shoot prevent a wake-up.
	ShootCRDsWithProblematicConversionWebhooks ConditionType = "CRDsWithProblematicConversionWebhooks"
	// ShootManualInPlaceWorkersUpdated reports whether manually updated pools are up to date.
	ShootManualInPlaceWorkersUpdated ConditionType = "ManualInPlaceWorkersUpdated"
	// ShootReadyForMigration reports whether the control plane can move to another Seed.
	ShootReadyForMigration ConditionType = "ReadyForMigration"
	// ShootDualStackNodesMigrationReady reports whether all nodes have addresses of both IP
	// families.
	ShootDualStackNodesMigrationReady ConditionType = "DualStackNodesMigrationReady"
	// ShootAutomaticCredentialsRotationPossible reports whether credentials can be rotated
	// automatically.
	ShootAutomaticCredentialsRotationPossible ConditionType = "AutomaticCredentialsRotationPossible"
	// ShootHasIgnoredManagedResources reports whether a ManagedResource is ignored.
	ShootHasIgnoredManagedResources ConditionType = "HasIgnoredManagedResources"
	// ShootPreservedFailedMachinesAbsent reports whether failed machines are preserved for
	// investigation.
	ShootPreservedFailedMachinesAbsent ConditionType = "PreservedFailedMachinesAbsent"
)

// Condition types of a Seed.
const (
	// GardenletReady reports whether the gardenlet is alive.
	GardenletReady ConditionType = "GardenletReady"
	// SeedSystemComponentsHealthy reports whether the system components are healthy.
	SeedSystemComponentsHealthy ConditionType = "SeedSystemComponentsHealthy"
	// SeedBackupBucketsReady reports whether the backup buckets are ready.
	SeedBackupBucketsReady ConditionType = "BackupBucketsReady"
	// SeedExtensionsReady reports whether the extensions are ready.
	SeedExtensionsReady ConditionType = "ExtensionsReady"
	// SeedEmergencyStopShootReconciliations reports whether operations on Shoots are stopped.
	SeedEmergencyStopShootReconciliations ConditionType = "EmergencyStopShootReconciliations"
	// SeedManagedResourcesHonored reports whether no ManagedResource is ignored.
	SeedManagedResourcesHonored ConditionType = "ManagedResourcesHonored"
)
