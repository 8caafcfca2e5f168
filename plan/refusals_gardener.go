package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pergola-dev/pergola/internal/jsonvalue"
)

const (
	core       = "core.gardener.cloud"
	extensions = "extensions.gardener.cloud"
	operator   = "operator.gardener.cloud"
)

// gardenerRefusals are the refusals of Gardener's API: upstream's validation
// (pkg/api/*/validation), which package schemas implements with reasons, and rules in the
// definitions of api/crds. Rules that depend on a status are missing.
var gardenerRefusals = map[schemaKind][]rule{
	{Group: core, Kind: "Shoot"}: {fixed("spec.region", "spec.provider.type", "spec.exposureClassName", "spec.schedulerName"),
		setOnce("spec.dns.domain", "spec.networking.type", "spec.networking.pods", "spec.networking.services"),
		staysSet("spec.credentialsBindingName", "spec.networking", "spec.dns"),
		when(func(e edit) bool { return e.is("spec.seedName") != nil }, setOnce("spec.controlPlane.highAvailability.failureTolerance.type")),
		when(func(e edit) bool { return e.is("spec.credentialsBindingName") == nil }, fixed("spec.secretBindingName")),
		setOnce("spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize"), families("spec.networking.ipFamilies"), workerless, kubernetesVersion("spec.kubernetes.version")},
	{Group: core, Kind: "Seed"}: {fixed("spec.networks.pods", "spec.networks.services", "spec.networks.ipFamilies"), setOnce("spec.networks.nodes", "spec.ingress.domain",
		"spec.backup.provider", "spec.backup.region"), staysSet("spec.backup")},
	{Group: core, Kind: "BackupBucket"}:           {fixed("spec.provider", "spec.seedName")},
	{Group: core, Kind: "Project"}:                {setOnce("spec.namespace", "spec.createdBy"), staysSet("spec.owner")},
	{Group: core, Kind: "Quota"}:                  {fixed("spec.scope")},
	{Group: core, Kind: "SecretBinding"}:          {fixed("secretRef", "quotas"), setOnce("provider")},
	{Group: core, Kind: "InternalSecret"}:         {fixed("type")},
	{Group: core, Kind: "NamespacedCloudProfile"}: {fixed("spec.parent")},
	{Group: core, Kind: "CloudProfile"}:           {when(func(e edit) bool { return e.is("spec.limits.maxNodesTotal") != nil }, notLess("spec.limits.maxNodesTotal"))},
	{Group: core, Kind: "ExposureClass"}:          {fixed("handler")},
	{Group: core, Kind: "ControllerInstallation"}: {fixed("spec.registrationRef.name"), setOnce("spec.seedRef.name")},
	{Group: core, Kind: "ControllerRegistration"}: {primaryResources},

	{Group: "security.gardener.cloud", Kind: "CredentialsBinding"}: {fixed("provider", "credentialsRef", "quotas")},
	{Group: "security.gardener.cloud", Kind: "WorkloadIdentity"}:   {fixed("spec.targetSystem.type")},
	{Group: "seedmanagement.gardener.cloud", Kind: "ManagedSeed"}:  {fixed("spec.shoot")},
	{Group: "operations.gardener.cloud", Kind: "Bastion"}:          {fixed("spec.shootRef.name", "spec.sshPublicKey")},

	{Group: operator, Kind: "Extension"}: {primaryResources},
	{Group: operator, Kind: "Garden"}: {fixed("spec.virtualCluster.gardener.clusterIdentity"),
		staysSet("spec.virtualCluster.etcd.main.backup", "spec.virtualCluster.controlPlane.highAvailability", "spec.virtualCluster.gardener.gardenerDiscoveryServer"),
		when(func(e edit) bool { return e.was(gardenBackup) != nil && e.is(gardenBackup) != nil }, fixed(gardenBackup+".bucketName")),
		setOnce(gardenBackup+".provider", gardenBackup+".region", "spec.virtualCluster.gardener.gardenerDiscoveryServer.domain"),
		firstDomain("spec.runtimeCluster.ingress.domains"), firstDomain("spec.virtualCluster.dns.domains"), kubernetesVersion("spec.virtualCluster.kubernetes.version")},

	{Group: extensions, Kind: "BackupBucket"}:            {fixed("spec.type", "spec.region")},
	{Group: extensions, Kind: "BackupEntry"}:             {fixed("spec.type")},
	{Group: extensions, Kind: "Bastion"}:                 {fixed("spec.type", "spec.userData")},
	{Group: extensions, Kind: "ContainerRuntime"}:        {fixed("spec.type", "spec.workerPool.name")},
	{Group: extensions, Kind: "ControlPlane"}:            {fixed("spec.type", "spec.region")},
	{Group: extensions, Kind: "DNSRecord"}:               {fixed("spec.type", "spec.name", "spec.recordType")},
	{Group: extensions, Kind: "Extension"}:               {fixed("spec.type")},
	{Group: extensions, Kind: "Infrastructure"}:          {fixed("spec.type", "spec.region")},
	{Group: extensions, Kind: "Network"}:                 {fixed("spec.type", "spec.podCIDR", "spec.serviceCIDR"), families("spec.ipFamilies")},
	{Group: extensions, Kind: "OperatingSystemConfig"}:   {fixed("spec.type", "spec.purpose")},
	{Group: extensions, Kind: "SelfHostedShootExposure"}: {fixed("spec.type")},
	{Group: extensions, Kind: "Worker"}:                  {fixed("spec.type", "spec.region")},

	{Group: "druid.gardener.cloud", Kind: "Etcd"}: {fixed("spec.storageClass"), setOnce("spec.volumeClaimTemplate"), members},
}

const gardenBackup = "spec.virtualCluster.etcd.main.backup"

// families allows only changes between IPv4 and IPv4 with IPv6.
func families(path string) rule {
	return func(e edit) []string {
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
		was, is := of(e.was(path)), of(e.is(path))
		may := []string{"IPv4", "IPv4,IPv6"}
		if was == is || slices.Contains(may, was) && slices.Contains(may, is) {
			return nil
		}
		return []string{path}
	}
}

// workerless is a rule for Shoots: workers cannot be added to none, or all removed.
func workerless(e edit) []string {
	count := func(v any) int { items, _ := v.([]any); return len(items) }
	const path = "spec.provider.workers"
	if (count(e.was(path)) == 0) != (count(e.is(path)) == 0) {
		return []string{path}
	}
	return nil
}

// kubernetesVersion allows only upgrades, by at most one minor version.
func kubernetesVersion(path string) rule {
	return func(e edit) []string {
		was, ok := versionOf(e.was(path))
		is, ok2 := versionOf(e.is(path))
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
func firstDomain(path string) rule {
	return func(e edit) []string {
		first := func(v any) any {
			if items, _ := v.([]any); len(items) > 0 {
				return nestedIn(items[0], "name")
			}
			return nil
		}
		was, is := first(e.was(path)), first(e.is(path))
		if was == nil || is == nil || was == is {
			return nil
		}
		return []string{path + "[0]"}
	}
}

// primaryResources is a rule for the field primary of resources.
func primaryResources(e edit) []string {
	return slices.DeleteFunc(e.changedWithin("spec.resources"), func(path string) bool { return !strings.HasSuffix(path, ".primary") })
}

// members of an etcd may only increase, or be scaled to zero.
func members(e edit) []string {
	if n, ok := jsonvalue.Number(e.is("spec.replicas")); ok && n.Sign() == 0 {
		return nil
	}
	return notLess("spec.replicas")(e)
}
