package v1beta1

// Condition types of a Shoot.
const (
	// ShootAPIServerAvailable says whether the API server answers.
	ShootAPIServerAvailable ConditionType = "APIServerAvailable"
	// ShootControlPlaneHealthy says whether the components of the control plane are healthy.
	ShootControlPlaneHealthy ConditionType = "ControlPlaneHealthy"
	// ShootObservabilityComponentsHealthy says whether monitoring and logging are healthy.
	ShootObservabilityComponentsHealthy ConditionType = ObservabilityComponentsHealthy
	// ShootEveryNodeReady says whether every node is there, ready and up to date.
	ShootEveryNodeReady ConditionType = "EveryNodeReady"
	// ShootSystemComponentsHealthy says whether the system components in the cluster are healthy.
	ShootSystemComponentsHealthy ConditionType = "SystemComponentsHealthy"
	// ShootBackupBucketsReady says whether the backup bucket of a self-hosted Shoot is ready.
	ShootBackupBucketsReady ConditionType = "BackupBucketsReady"
	// ObservabilityComponentsHealthy says whether monitoring and logging are healthy, on Gardens and Shoots.
	ObservabilityComponentsHealthy ConditionType = "ObservabilityComponentsHealthy"
)

// Constraint types of a Shoot. The first two are always present, the others only while they are not True.
const (
	// ShootHibernationPossible says whether the Shoot can be hibernated.
	ShootHibernationPossible ConditionType = "HibernationPossible"
	// ShootMaintenancePreconditionsSatisfied says whether maintenance can take place.
	ShootMaintenancePreconditionsSatisfied ConditionType = "MaintenancePreconditionsSatisfied"
	// ShootCACertificateValiditiesAcceptable says whether the certificate authorities are valid for long enough.
	ShootCACertificateValiditiesAcceptable ConditionType = "CACertificateValiditiesAcceptable"
	// ShootCRDsWithProblematicConversionWebhooks says whether definitions in the Shoot stand in the way of a wake-up.
	ShootCRDsWithProblematicConversionWebhooks ConditionType = "CRDsWithProblematicConversionWebhooks"
	// ShootManualInPlaceWorkersUpdated says whether pools that are updated by hand are up to date.
	ShootManualInPlaceWorkersUpdated ConditionType = "ManualInPlaceWorkersUpdated"
	// ShootReadyForMigration says whether the control plane can move to another Seed.
	ShootReadyForMigration ConditionType = "ReadyForMigration"
	// ShootDualStackNodesMigrationReady says whether all nodes have addresses of both IP families.
	ShootDualStackNodesMigrationReady ConditionType = "DualStackNodesMigrationReady"
	// ShootAutomaticCredentialsRotationPossible says whether credentials can be rotated automatically.
	ShootAutomaticCredentialsRotationPossible ConditionType = "AutomaticCredentialsRotationPossible"
	// ShootHasIgnoredManagedResources says whether some ManagedResource is ignored.
	ShootHasIgnoredManagedResources ConditionType = "HasIgnoredManagedResources"
	// ShootPreservedFailedMachinesAbsent says whether failed machines are kept for a look at them.
	ShootPreservedFailedMachinesAbsent ConditionType = "PreservedFailedMachinesAbsent"
)

// Condition types of a Seed.
const (
	// GardenletReady says whether the gardenlet is alive.
	GardenletReady ConditionType = "GardenletReady"
	// SeedSystemComponentsHealthy says whether the system components are healthy.
	SeedSystemComponentsHealthy ConditionType = "SeedSystemComponentsHealthy"
	// SeedBackupBucketsReady says whether the backup buckets are ready.
	SeedBackupBucketsReady ConditionType = "BackupBucketsReady"
	// SeedExtensionsReady says whether the extensions are ready.
	SeedExtensionsReady ConditionType = "ExtensionsReady"
	// SeedEmergencyStopShootReconciliations says whether operations on Shoots are stopped.
	SeedEmergencyStopShootReconciliations ConditionType = "EmergencyStopShootReconciliations"
	// SeedManagedResourcesHonored says whether no ManagedResource is ignored.
	SeedManagedResourcesHonored ConditionType = "ManagedResourcesHonored"
)
