// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pergola-dev/pergola/internal/jsonvalue"
)

const (
	coreGroup       = "core.gardener.cloud"
	extensionsGroup = "extensions.gardener.cloud"
	operatorGroup   = "operator.gardener.cloud"
)

// gardenerUpdateRules are the refusals of Gardener's API: upstream's validation
// (pkg/api/*/validation), which package schemas implements with reasons, and rules in the
// definitions of api/crds. Rules that depend on a status are missing.
var gardenerUpdateRules = map[schemaKind][]updateRule{
	{Group: coreGroup, Kind: "Shoot"}: {immutableFields("spec.region", "spec.provider.type", "spec.exposureClassName", "spec.schedulerName"),
		immutableOnceSet("spec.dns.domain", "spec.networking.type", "spec.networking.pods", "spec.networking.services"),
		notRemovable("spec.credentialsBindingName", "spec.networking", "spec.dns"),
		conditionalRules(func(e objectChange) bool { return e.newValue("spec.seedName") != nil }, immutableOnceSet("spec.controlPlane.highAvailability.failureTolerance.type")),
		conditionalRules(func(e objectChange) bool { return e.newValue("spec.credentialsBindingName") == nil }, immutableFields("spec.secretBindingName")),
		immutableOnceSet("spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize"), ipFamilies("spec.networking.ipFamilies"), shootWorkers, kubernetesVersion("spec.kubernetes.version")},
	{Group: coreGroup, Kind: "Seed"}: {immutableFields("spec.networks.pods", "spec.networks.services", "spec.networks.ipFamilies"), immutableOnceSet("spec.networks.nodes", "spec.ingress.domain",
		"spec.backup.provider", "spec.backup.region"), notRemovable("spec.backup")},
	{Group: coreGroup, Kind: "BackupBucket"}:           {immutableFields("spec.provider", "spec.seedName")},
	{Group: coreGroup, Kind: "Project"}:                {immutableOnceSet("spec.namespace", "spec.createdBy"), notRemovable("spec.owner")},
	{Group: coreGroup, Kind: "Quota"}:                  {immutableFields("spec.scope")},
	{Group: coreGroup, Kind: "SecretBinding"}:          {immutableFields("secretRef", "quotas"), immutableOnceSet("provider")},
	{Group: coreGroup, Kind: "InternalSecret"}:         {immutableFields("type")},
	{Group: coreGroup, Kind: "NamespacedCloudProfile"}: {immutableFields("spec.parent")},
	{Group: coreGroup, Kind: "CloudProfile"}:           {conditionalRules(func(e objectChange) bool { return e.newValue("spec.limits.maxNodesTotal") != nil }, notDecreasing("spec.limits.maxNodesTotal"))},
	{Group: coreGroup, Kind: "ExposureClass"}:          {immutableFields("handler")},
	{Group: coreGroup, Kind: "ControllerInstallation"}: {immutableFields("spec.registrationRef.name"), immutableOnceSet("spec.seedRef.name")},
	{Group: coreGroup, Kind: "ControllerRegistration"}: {primaryResources},

	{Group: "security.gardener.cloud", Kind: "CredentialsBinding"}: {immutableFields("provider", "credentialsRef", "quotas")},
	{Group: "security.gardener.cloud", Kind: "WorkloadIdentity"}:   {immutableFields("spec.targetSystem.type")},
	{Group: "seedmanagement.gardener.cloud", Kind: "ManagedSeed"}:  {immutableFields("spec.shoot")},
	{Group: "operations.gardener.cloud", Kind: "Bastion"}:          {immutableFields("spec.shootRef.name", "spec.sshPublicKey")},

	{Group: operatorGroup, Kind: "Extension"}: {primaryResources},
	{Group: operatorGroup, Kind: "Garden"}: {immutableFields("spec.virtualCluster.gardener.clusterIdentity"),
		notRemovable("spec.virtualCluster.etcd.main.backup", "spec.virtualCluster.controlPlane.highAvailability", "spec.virtualCluster.gardener.gardenerDiscoveryServer"),
		conditionalRules(func(e objectChange) bool {
			return e.oldValue(gardenBackupPath) != nil && e.newValue(gardenBackupPath) != nil
		}, immutableFields(gardenBackupPath+".bucketName")),
		immutableOnceSet(gardenBackupPath+".provider", gardenBackupPath+".region", "spec.virtualCluster.gardener.gardenerDiscoveryServer.domain"),
		firstDomain("spec.runtimeCluster.ingress.domains"), firstDomain("spec.virtualCluster.dns.domains"), kubernetesVersion("spec.virtualCluster.kubernetes.version")},

	{Group: extensionsGroup, Kind: "BackupBucket"}:            {immutableFields("spec.type", "spec.region")},
	{Group: extensionsGroup, Kind: "BackupEntry"}:             {immutableFields("spec.type")},
	{Group: extensionsGroup, Kind: "Bastion"}:                 {immutableFields("spec.type", "spec.userData")},
	{Group: extensionsGroup, Kind: "ContainerRuntime"}:        {immutableFields("spec.type", "spec.workerPool.name")},
	{Group: extensionsGroup, Kind: "ControlPlane"}:            {immutableFields("spec.type", "spec.region")},
	{Group: extensionsGroup, Kind: "DNSRecord"}:               {immutableFields("spec.type", "spec.name", "spec.recordType")},
	{Group: extensionsGroup, Kind: "Extension"}:               {immutableFields("spec.type")},
	{Group: extensionsGroup, Kind: "Infrastructure"}:          {immutableFields("spec.type", "spec.region")},
	{Group: extensionsGroup, Kind: "Network"}:                 {immutableFields("spec.type", "spec.podCIDR", "spec.serviceCIDR"), ipFamilies("spec.ipFamilies")},
	{Group: extensionsGroup, Kind: "OperatingSystemConfig"}:   {immutableFields("spec.type", "spec.purpose")},
	{Group: extensionsGroup, Kind: "SelfHostedShootExposure"}: {immutableFields("spec.type")},
	{Group: extensionsGroup, Kind: "Worker"}:                  {immutableFields("spec.type", "spec.region")},

	{Group: "druid.gardener.cloud", Kind: "Etcd"}: {immutableFields("spec.storageClass"), immutableOnceSet("spec.volumeClaimTemplate"), etcdMembers},
}

const gardenBackupPath = "spec.virtualCluster.etcd.main.backup"

// ipFamilies allows only changes between IPv4 and IPv4 with IPv6.
func ipFamilies(path string) updateRule {
	return func(e objectChange) []string {
		of := func(v any) string {
			var out []string
			items, _ := v.([]any)
			for _, f := range items {
				text, _ := f.(string)
				out = append(out, text)
			}
			if len(out) == 0 {
				return "IPv4"
			}
			return strings.Join(out, ",")
		}
		was, is := of(e.oldValue(path)), of(e.newValue(path))
		may := []string{"IPv4", "IPv4,IPv6"}
		if was == is || slices.Contains(may, was) && slices.Contains(may, is) {
			return nil
		}
		return []string{path}
	}
}

// shootWorkers is a rule for Shoots: workers cannot be added to none, or all removed.
func shootWorkers(e objectChange) []string {
	count := func(v any) int { items, _ := v.([]any); return len(items) }
	const path = "spec.provider.workers"
	if (count(e.oldValue(path)) == 0) != (count(e.newValue(path)) == 0) {
		return []string{path}
	}
	return nil
}

// kubernetesVersion allows only upgrades, by at most one minor version.
func kubernetesVersion(path string) updateRule {
	return func(e objectChange) []string {
		was, ok := versionOf(e.oldValue(path))
		is, ok2 := versionOf(e.newValue(path))
		if !ok || !ok2 || slices.Compare(is[:], was[:]) >= 0 && is[0] == was[0] && is[1] <= was[1]+1 {
			return nil
		}
		return []string{path}
	}
}

// versionOf returns the numbers of a version with three parts.
func versionOf(v any) (out [3]int, ok bool) {
	text, _ := v.(string)
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	if len(parts) != 3 {
		return out, false
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			return out, false
		}
		out[i] = n
	}
	return out, true
}

// firstDomain is a rule for the first domain, which is part of the garden's addresses.
func firstDomain(path string) updateRule {
	return func(e objectChange) []string {
		first := func(v any) any {
			if items, _ := v.([]any); len(items) > 0 {
				return fieldOf(items[0], "name")
			}
			return nil
		}
		was, is := first(e.oldValue(path)), first(e.newValue(path))
		if was == nil || is == nil || was == is {
			return nil
		}
		return []string{path + "[0]"}
	}
}

// primaryResources is a rule for the field primary of resources.
func primaryResources(e objectChange) []string {
	return slices.DeleteFunc(e.changedWithin("spec.resources"), func(path string) bool { return !strings.HasSuffix(path, ".primary") })
}

// etcdMembers of an etcd may only increase, or be scaled to zero.
func etcdMembers(e objectChange) []string {
	if n, ok := jsonvalue.Number(e.newValue("spec.replicas")); ok && n.Sign() == 0 {
		return nil
	}
	return notDecreasing("spec.replicas")(e)
}
