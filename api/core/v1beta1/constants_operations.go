// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Values of GardenerOperation on declared objects.
const (
	// GardenerOperationReconcile reconciles the object now.
	GardenerOperationReconcile = "reconcile"
	// ShootOperationRetry retries a failed operation.
	ShootOperationRetry = "retry"
	// ShootOperationMaintain starts maintenance now.
	ShootOperationMaintain = "maintain"

	// OperationRotateCredentialsStart starts the rotation of all credentials.
	OperationRotateCredentialsStart = "rotate-credentials-start"
	// OperationRotateCredentialsStartWithoutWorkersRollout does so without replacing machines.
	OperationRotateCredentialsStartWithoutWorkersRollout = "rotate-credentials-start-without-workers-rollout"
	// OperationRotateCredentialsComplete completes the rotation of all credentials.
	OperationRotateCredentialsComplete = "rotate-credentials-complete"
	// OperationRotateCAStart starts the rotation of the certificate authorities.
	OperationRotateCAStart = "rotate-ca-start"
	// OperationRotateCAStartWithoutWorkersRollout does so without replacing machines.
	OperationRotateCAStartWithoutWorkersRollout = "rotate-ca-start-without-workers-rollout"
	// OperationRotateCAComplete completes the rotation of the certificate authorities.
	OperationRotateCAComplete = "rotate-ca-complete"
	// OperationRotateServiceAccountKeyStart starts the rotation of the key that signs service
	// account tokens.
	OperationRotateServiceAccountKeyStart = "rotate-serviceaccount-key-start"
	// OperationRotateServiceAccountKeyStartWithoutWorkersRollout does so without replacing
	// machines.
	OperationRotateServiceAccountKeyStartWithoutWorkersRollout = "rotate-serviceaccount-key-start-without-workers-rollout"
	// OperationRotateServiceAccountKeyComplete completes the rotation of the key that signs service
	// account tokens.
	OperationRotateServiceAccountKeyComplete = "rotate-serviceaccount-key-complete"
	// OperationRotateETCDEncryptionKey rotates the key that encrypts data in etcd, in one step.
	OperationRotateETCDEncryptionKey = "rotate-etcd-encryption-key"
	// OperationRotateETCDEncryptionKeyStart starts that rotation in two steps. Forbidden from
	// Kubernetes 1.34 on.
	OperationRotateETCDEncryptionKeyStart = "rotate-etcd-encryption-key-start"
	// OperationRotateETCDEncryptionKeyComplete completes that rotation in two steps. Forbidden from
	// Kubernetes 1.34 on.
	OperationRotateETCDEncryptionKeyComplete = "rotate-etcd-encryption-key-complete"
	// OperationRotateObservabilityCredentials rotates the passwords of monitoring and logging.
	OperationRotateObservabilityCredentials = "rotate-observability-credentials"
	// ShootOperationRotateSSHKeypair rotates the SSH key pair of the nodes.
	ShootOperationRotateSSHKeypair = "rotate-ssh-keypair"
	// OperationRotateRolloutWorkers starts a value that replaces machines of the listed pools,
	// joined by commas.
	OperationRotateRolloutWorkers = "rotate-rollout-workers"
	// OperationRolloutWorkers starts a value that replaces machines of the listed pools, joined by
	// commas.
	OperationRolloutWorkers = "rollout-workers"
	// GardenOperationRotateWorkloadIdentityKeyStart starts the rotation of the key that signs
	// workload identity tokens.
	GardenOperationRotateWorkloadIdentityKeyStart = "rotate-workload-identity-key-start"
	// GardenOperationRotateWorkloadIdentityKeyComplete completes that rotation.
	GardenOperationRotateWorkloadIdentityKeyComplete = "rotate-workload-identity-key-complete"

	// SeedOperationRenewGardenAccessSecrets renews the tokens that components of a Seed use in the
	// garden.
	SeedOperationRenewGardenAccessSecrets = "renew-garden-access-secrets"
	// SeedOperationRenewWorkloadIdentityTokens renews the workload identity tokens of a Seed.
	SeedOperationRenewWorkloadIdentityTokens = "renew-workload-identity-tokens"
	// GardenerOperationRenewKubeconfig makes a gardenlet request a new client certificate.
	GardenerOperationRenewKubeconfig = "renew-kubeconfig"
)

// OperationSeparator joins several operations in one annotation.
const OperationSeparator = ";"

// Values of GardenerOperation on extension objects.
const (
	// GardenerOperationMigrate makes the extension release the object for another seed.
	GardenerOperationMigrate = "migrate"
	// GardenerOperationRestore makes the extension adopt the object, with its state, from another
	// seed.
	GardenerOperationRestore = "restore"
	// GardenerOperationWaitForState makes the extension ignore the object until its state is
	// written.
	GardenerOperationWaitForState = "wait-for-state"
	// GardenerOperationKeepalive extends the lifetime of a Bastion.
	GardenerOperationKeepalive = "keepalive"
)

// Values of ShootTasks.
const (
	// ShootTaskDeployInfrastructure reconciles the Infrastructure.
	ShootTaskDeployInfrastructure = "deployInfrastructure"
	// ShootTaskDeployDNSRecordInternal reconciles the DNSRecord of the internal address.
	ShootTaskDeployDNSRecordInternal = "deployDNSRecordInternal"
	// ShootTaskDeployDNSRecordExternal reconciles the DNSRecord of the external address.
	ShootTaskDeployDNSRecordExternal = "deployDNSRecordExternal"
	// ShootTaskDeployDNSRecordIngress reconciles the DNSRecord of the ingress domain.
	ShootTaskDeployDNSRecordIngress = "deployDNSRecordIngress"
	// ShootTaskRestartControlPlanePods restarts the pods of the control plane.
	ShootTaskRestartControlPlanePods = "restartControlPlanePods"
	// ShootTaskRestartCoreAddons restarts the system components in the cluster.
	ShootTaskRestartCoreAddons = "restartCoreAddons"
)
