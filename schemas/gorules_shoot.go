// SPDX-License-Identifier: Apache-2.0

package schemas

const (
	sourceShoot              = "pkg/api/core/validation/shoot.go"
	goReasonArithmetic       = " The rule is in Go because CUE has no arithmetic on addresses."
	goReasonDurations        = " The rule is in Go because CUE cannot compare durations and quantities."
	goReasonVersions         = " The rule is in Go because it reads a table of what each version of Kubernetes has, and compares versions."
	goReasonShootAndPools    = " The rule is in Go because the same checks hold for the Shoot and for every pool."
	goReasonObjectComparison = " The rule is in Go because whole values of the old and the new object are compared, with the values that the API sets."
	goReasonOperations       = " The rule is in Go because the annotation is a list in a text, and each operation has its own conditions."
	goReasonShared           = " The rule is in Go because Garden and Shoot share it."
)

// shootGoRules lists the Go rules of Shoots, with the reason why each is not in CUE.
func shootGoRules() []goRule {
	rule := func(id, title, doc string, check func(*findingCollector, shoot)) goRule {
		return goRule{Rule: Rule{ID: "shoot/" + id, Kind: "Shoot", Title: title, Doc: doc, Source: sourceShoot, Language: "go",
			Severity: SeverityError, Scope: scopeObject}, check: shootCheck(check)}
	}
	return []goRule{
		{Rule: Rule{ID: "shoot/networks-disjoint", Kind: "Shoot", Title: "Network ranges of a Shoot do not overlap",
			Doc:    "Ranges must not share addresses." + goReasonArithmetic,
			Source: sourceShoot, Fields: []string{"spec.networking"}, Language: "go", Severity: SeverityError, Scope: scopeObject}, check: checkShootNetworks},
		rule("network-ranges", "Network ranges begin with their first address and have the family of the Shoot",
			"10.1.2.3/16 is an address; the range is 10.1.0.0/16."+goReasonArithmetic, checkShootRanges).withFields("spec.addons.nginxIngress.loadBalancerSourceRanges", "spec.networking"),
		rule("node-mask", "The range of a node has an address for every pod",
			"Every node gets a part of the range of pods. Set nodeCIDRMaskSize smaller, or maxPods."+goReasonArithmetic, checkShootNodeMasks).withFields("spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize", "spec.kubernetes.kubeControllerManager.nodeCIDRMaskSizeIPv6"),
		{Rule: Rule{ID: "shoot/node-ranges", Kind: "Shoot", Title: "The range of pods has a part for every node",
			Doc:    "Every node gets a part of the range of pods: /24, unless nodeCIDRMaskSize is set. The range must suffice for the maximum of all pools. The API rejects a new Shoot whose nodes do not fit. This is a warning, because an existing Shoot keeps its range." + goReasonArithmetic,
			Source: "pkg/apis/core/validation (ValidateTotalNodeCountWithPodCIDR)", Fields: []string{"spec.networking.pods"}, Language: "go", Severity: SeverityWarning, Scope: scopeObject}, check: shootCheck(checkShootNodeRanges)},
		rule("kube-apiserver", "The configuration of kube-apiserver is one that Gardener and the version of Kubernetes know",
			"Feature gates, admission plugins and APIs exist in the version; limits, lifetimes, issuers and encrypted resources are in bounds."+goReasonVersions+goReasonShared, checkShootAPIServer).withFields("spec.kubernetes.kubeAPIServer").withChangeClass(),
		rule("etcd", "The floors of autoscaling of etcd are not below what it needs", "The main etcd needs at least 300M of memory, and the etcd of events 60M."+goReasonDurations, checkShootEtcd).withFields("spec.kubernetes.etcd.events.autoscaling", "spec.kubernetes.etcd.main.autoscaling"),
		rule("kube-controller-manager", "The configuration of kube-controller-manager is in bounds", "Durations are positive, and feature gates exist in the version."+goReasonDurations+goReasonVersions, checkShootControllerManager).withFields("spec.kubernetes.kubeControllerManager"),
		rule("kube-scheduler", "The configuration of kube-scheduler is one that the version of Kubernetes knows", "Feature gates exist in the version."+goReasonVersions, checkShootScheduler).withFields("spec.kubernetes.kubeScheduler"),
		rule("kube-proxy", "The configuration of kube-proxy is one that the version of Kubernetes knows", "Feature gates exist in the version."+goReasonVersions, checkShootProxy).withFields("spec.kubernetes.kubeProxy"),
		rule("cluster-autoscaler", "The configuration of the cluster autoscaler is in bounds", "Durations and numbers are not negative, and taints are keys of taints."+goReasonDurations, checkShootAutoscaler).withFields("spec.kubernetes.clusterAutoscaler"),
		rule("vertical-pod-autoscaler", "The configuration of the vertical pod autoscaler is in bounds", "Durations are not negative, and percentiles are between 0 and 1."+goReasonDurations, checkShootVerticalAutoscaler).withFields("spec.kubernetes.verticalPodAutoscaler"),
		rule("kubelet", "The configuration of the kubelet is in bounds, for the Shoot and for every pool", "Thresholds, reserved resources, swap and the pulling of images fit together."+goReasonDurations+goReasonShootAndPools, checkShootKubelet).withFields("spec.kubernetes.kubelet", "spec.provider.workers.kubernetes.kubelet"),
		{Rule: Rule{ID: "shoot/eviction-inodes", Kind: "Shoot", Title: "Thresholds for inodes of nodes are quantities or percentages",
			Doc:    "Upstream checks the thresholds of all kinds but this one, so it accepts a wrong one, with which no kubelet starts." + goReasonShootAndPools,
			Source: sourceShoot + ", where imageFSInodesFree is checked twice and nodeFSInodesFree never", Fields: []string{"spec.kubernetes.kubelet", "spec.provider.workers.kubernetes.kubelet"},
			Language: "go", Severity: SeverityWarning, Scope: scopeObject}, check: shootCheck(checkShootEvictionInodes)},
		rule("worker-forms", "Names, labels, volumes, sysctls and certificates of pools have the form that Kubernetes requires", "A name of a pool or a volume has at most 15 characters, because it becomes a part of longer names. The rule is in Go because Kubernetes' own functions decide.", checkShootWorkerForms).withFields(
			"spec.provider.workers.annotations", "spec.provider.workers.caBundle", "spec.provider.workers.dataVolumes", "spec.provider.workers.kubeletDataVolumeName", "spec.provider.workers.labels", "spec.provider.workers.machine.image", "spec.provider.workers.machine.type", "spec.provider.workers.name", "spec.provider.workers.priority", "spec.provider.workers.sysctls", "spec.provider.workers.volume"),
		rule("worker-taints", "Kubernetes accepts the taints of pools", "Each key is given once with an effect; one key is reserved for Gardener. The rule is in Go because Kubernetes' own functions decide.", checkShootTaints).withFields("spec.provider.workers.taints"),
		rule("worker-surge", "A worker pool can be rolled", "A rolling update either adds a machine first (maxSurge) or removes one first (maxUnavailable). If both are zero it can do neither and never starts. The rule is in Go because both are numbers or percentages with defaults that depend on the strategy.", checkShootRolling).withFields("spec.provider.workers.maxSurge", "spec.provider.workers.maxUnavailable"),
		rule("worker-settings", "Settings of autoscaling and machines of pools are in bounds", "Durations are not negative, and thresholds are between 0 and 1; some are only for machines that are updated in place."+goReasonDurations, checkShootPoolSettings).withFields("spec.provider.workers.clusterAutoscaler", "spec.provider.workers.cri.containerRuntimes", "spec.provider.workers.machineControllerManager"),
		rule("worker-system-components", "Components of the system find a node in every zone", "A pool that allows them has at least as many machines as zones; pools with the same zones count together. The rule is in Go because it groups pools by their zones.", checkShootSystemPools).withFields("spec.provider.workers", "spec.provider.workers.maximum", "spec.provider.workers.systemComponents", "spec.provider.workers.zones"),
		rule("worker-version", "A pool is not newer than the control plane, and at most three minor versions older", "The kubelet may be older than kube-apiserver, never newer."+goReasonVersions, checkShootPoolVersions).withFields("spec.provider.workers.kubernetes.version"),
		rule("maintenance-window", "The time window of maintenance is between 30 minutes and 6 hours long", "Its begin and end may be on both sides of midnight. The rule is in Go because the ends have time zones.", checkShootWindow).withFields("spec.maintenance.timeWindow"),
		rule("auto-rotation", "Credentials are rotated every 30 minutes to 90 days", "0 turns the rotation off."+goReasonDurations, checkShootRotation).withFields("spec.maintenance.autoRotation"),
		rule("encryption-rotated", "The key of aesgcm is rotated", "AES-GCM is not safe after too many writes with one key."+goReasonDurations, checkShootKeyRotation).withFields("spec.kubernetes.kubeAPIServer.encryptionConfig.provider.type"),
		rule("hibernation-schedules", "Schedules of hibernation are schedules of cron in a known time zone", "Each is given once. The rule is in Go because CUE cannot read cron and knows no time zones.", checkShootHibernation).withFields("spec.hibernation"),
		rule("operations", "Operations exist, can be combined, and are possible in the state of the Shoot", "A rotation begins when the last one is complete, and is completed when it is prepared. Without a status the state is unknown, so the operation is not possible."+goReasonOperations, checkShootOperations).withFields("metadata.annotations").withChangeClass(),
		rule("immutable", "Immutable fields do not change", "Region, provider, domain, networks and bindings are fixed by the cluster. Create a new Shoot instead."+goReasonObjectComparison, checkShootUpdate).withFields(
			"spec", "spec.credentialsBindingName", "spec.dns", "spec.exposureClassName", "spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize", "spec.networking",
			"spec.provider.type", "spec.provider.workers", "spec.region", "spec.schedulerName", "spec.secretBindingName", "status").withChangeClass(),
		rule("high-availability-update", "A control plane keeps its failure tolerance and its zones", "Replicas and their volumes stay where they are. Tolerance can be added, and one zone can grow to three."+goReasonObjectComparison, checkShootHighAvailabilityUpdate).withFields("spec.controlPlane").withChangeClass(),
		rule("version-update", "The Kubernetes version only rises and skips no minor version", "Only kubelets of pools whose machines are replaced may skip minor versions."+goReasonVersions, checkShootVersionUpdate).withFields("spec.kubernetes.version", "spec.provider.workers.kubernetes.version", "spec.provider.workers.machine.image.version").withChangeClass(),
		rule("worker-update", "Pools keep the settings that their machines cannot change", "Machines that are updated in place keep their type, image, volume and strategy; the pool of a control plane stays."+goReasonObjectComparison, checkShootPoolUpdate).withFields(
			"spec.provider.workers", "spec.provider.workers.controlPlane", "spec.provider.workers.cri.name", "spec.provider.workers.machine.image.name", "spec.provider.workers.machine.type", "spec.provider.workers.updateStrategy", "spec.provider.workers.volume").withChangeClass(),
		rule("worker-update-pending", "A pool does not change while its machines are updated in place", "Wait for the update, or force the change."+goReasonObjectComparison, checkShootPendingUpdate).withFields("spec.provider.workers").withChangeClass(),
		rule("node-local-dns-update", "The DNS cache of nodes is not turned on or off for machines that are updated in place", "It needs new machines below Kubernetes 1.34 and with IPVS."+goReasonObjectComparison, checkShootNodeLocalDNSUpdate).withFields("spec.systemComponents.nodeLocalDNS").withChangeClass(),
		rule("encryption-update", "The encryption does not change while a change is under way", "Wait until the rotation is complete, and the cluster awake. The provider and the resources are changed one after the other. Without a status, only the files are checked."+goReasonObjectComparison, checkShootEncryptionUpdate).withFields("spec.kubernetes.kubeAPIServer.encryptionConfig").withChangeClass(),
		rule("hibernation-update", "A cluster is not hibernated during a rotation", "Data could not be rewritten with the new key. Wait until the rotation is complete."+goReasonObjectComparison, checkShootHibernationUpdate).withFields("spec.hibernation.enabled").withChangeClass(),
		rule("nginx-config", "Settings of the ingress controller fit into a ConfigMap", "Each is a key of the ConfigMap of the controller, which has room for 1 MiB. The rule is in Go because Kubernetes' own function decides.", checkShootNginxConfig).withFields("spec.addons.nginxIngress.config"),
		{Rule: Rule{ID: "shoot/config-versions", Kind: "Shoot", Title: "Configurations of extensions have a version that can be written",
			Doc:    "__internal is the form of an object inside a program. The rule is in Go because this configuration has no schema here, so its apiVersion may be anything.",
			Source: "plugin/pkg/shoot/validator", Fields: []string{"spec.networking.providerConfig", "spec.provider.controlPlaneConfig", "spec.provider.infrastructureConfig",
				"spec.provider.workers.cri.containerRuntimes.providerConfig", "spec.provider.workers.machine.image.providerConfig", "spec.provider.workers.providerConfig"},
			Language: "go", Severity: SeverityError, Scope: scopeObject}, check: shootCheck(checkShootConfigVersions)},
		rule("ip-families-unique", "IP families of a Shoot are listed once", "The first family is the primary one, and the second makes the cluster dual-stack. A repeated family has no effect. The rule is in Go, like the other rules about networks.", checkShootFamilies).withFields("spec.networking.ipFamilies"),
		rule("seed-selector", "The seed selector is a label selector", "Keys and values have the form of labels; In and NotIn compare with values, Exists and DoesNotExist have none. The rule is in Go because the API server's own function decides.", checkShootSeedSelector).withFields("spec.seedSelector"),
		rule("force-deletion", "A deletion is forced only after a failed deletion", "Resources stay behind when a deletion is forced."+goReasonObjectComparison, checkShootForceDeletion).withFields("metadata.annotations[confirmation.gardener.cloud/force-deletion]").withChangeClass(),
	}
}
