package schemas

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// This file has the warnings about provider configurations that do not fit their object;
// gorules_plausible.go lists them.

// configKinds maps fields to the kinds of their configurations, where the group is that of a
// provider or a network.
var configKinds = map[string]map[string]string{
	"Shoot": {
		"spec.provider.infrastructureConfig": "InfrastructureConfig", "spec.provider.controlPlaneConfig": "ControlPlaneConfig",
		"spec.provider.workers[].providerConfig": "WorkerConfig", "spec.networking.providerConfig": "NetworkConfig",
	},
	"CloudProfile":           {"spec.providerConfig": "CloudProfileConfig"},
	"NamespacedCloudProfile": {"spec.providerConfig": "CloudProfileConfig"},
}

func configsInPlace(kind string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &report{}
		for _, at := range slices.Sorted(maps.Keys(configKinds[kind])) {
			want := configKinds[kind][at]
			for _, config := range each(tree{value: in.object}, at) {
				of := config.at("kind")
				isOfProvider := strings.Contains(config.at("apiVersion").text(), ".provider.extensions.gardener.cloud/") || strings.Contains(config.at("apiVersion").text(), ".networking.extensions.gardener.cloud/")
				if isOfProvider && of.text() != want && slices.Contains(slices.Collect(maps.Values(configKinds["Shoot"])), of.text()) {
					r.add(of, TypeNotSupported, "the extension reads a %s here, and not %s", want, of.text())
				}
			}
		}
		return r.findings
	}
}

func infrastructureFits(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	config := spec.at("provider", "infrastructureConfig")
	networks := config.at("networks")
	if nodes, err := netip.ParsePrefix(spec.at("networking", "nodes").text()); err == nil {
		for _, field := range slices.Concat([]tree{networks.at("workers"), networks.at("worker")}, each(networks, "zones[].workers")) {
			if subnet, err := netip.ParsePrefix(field.text()); err == nil && (!nodes.Contains(subnet.Addr()) || subnet.Bits() < nodes.Bits()) {
				r.add(field, TypeInvalid, "the range %s is not within %s of spec.networking.nodes", subnet, nodes)
			}
		}
	}
	if vpc := networks.at("vpc"); vpc.at("id").text() != "" && vpc.at("cidr").text() != "" {
		r.add(vpc.at("cidr"), TypeForbidden, "a network that is there (id) has its range: set one of id and cidr")
	}
	for _, id := range slices.Concat([]tree{networks.at("vpc", "id")}, each(networks, "zones[].elasticIPAllocationID")) {
		form := "vpc-"
		if strings.HasSuffix(id.path, "elasticIPAllocationID") {
			form = "eipalloc-"
		}
		if id.text() != "" && strings.HasPrefix(config.at("apiVersion").text(), "aws.") && !strings.HasPrefix(id.text(), form) {
			r.add(id, TypeInvalid, "%q is no ID of AWS for this, which begins with %s", id.text(), form)
		}
	}
	nat := networks.at("cloudNAT")
	if least, most := nat.at("minPortsPerVM"), nat.at("maxPortsPerVM"); most.set() && most.count() < least.count() {
		r.add(most, TypeInvalid, "%v is below %v of %s", most.value, least.value, least.path)
	}
	var zones []string
	for _, zone := range each(spec, "provider.workers[].zones[]") {
		zones = append(zones, zone.text())
	}
	if zone := spec.at("provider", "controlPlaneConfig", "zone"); zone.text() != "" && len(zones) > 0 && !slices.Contains(zones, zone.text()) {
		r.add(zone, TypeInvalid, "no pool of workers has machines in the zone %q%s", zone.text(), meant(zone.text(), zones))
	}
	for _, worker := range spec.at("provider", "workers").items() {
		var volumes []string
		for _, volume := range worker.at("dataVolumes").items() {
			volumes = append(volumes, volume.at("name").text())
		}
		config := worker.at("providerConfig")
		if profile := config.at("iamInstanceProfile"); profile.at("name").text() != "" && profile.at("arn").text() != "" {
			r.add(profile, TypeForbidden, "set one of name and arn, which say the same")
		}
		for _, volume := range config.at("dataVolumes").items() {
			if name := volume.at("name"); name.text() != "" && !slices.Contains(volumes, name.text()) {
				r.add(name, TypeInvalid, "the pool has no data volume %q%s", name.text(), meant(name.text(), volumes))
			}
		}
		if !strings.HasPrefix(spec.at("provider", "type").text(), "aws") {
			continue
		}
		if typ := worker.at("volume", "type"); slices.Contains(ratedVolumes, typ.text()) && !config.at("volume", "iops").set() {
			r.add(typ, TypeInvalid, "a volume of the type %s is made with a rate: set providerConfig.volume.iops", typ.text())
		}
		for _, volume := range worker.at("dataVolumes").items() {
			rated := slices.ContainsFunc(config.at("dataVolumes").items(), func(c tree) bool {
				return c.at("name").text() == volume.at("name").text() && c.at("iops").set()
			})
			if typ := volume.at("type"); slices.Contains(ratedVolumes, typ.text()) && !rated {
				r.add(typ, TypeInvalid, "a volume of the type %s is made with a rate: set iops for it in providerConfig.dataVolumes", typ.text())
			}
		}
	}
	return r.findings
}

// ratedVolumes lists the volume types of AWS that need a rate
// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateVolume.html, Iops).
var ratedVolumes = []string{"io1", "io2"}

// infrastructureStays reports changes of existing networks, which extensions refuse.
func infrastructureStays(in ruleInput) []finding {
	r := &report{}
	now, old := tree{value: in.object}.at("spec", "provider"), tree{value: in.old}.at("spec", "provider")
	stays := func(field, former tree) {
		if former.text() != "" && field.text() != former.text() {
			r.add(field, TypeForbidden, "was %q: the extension refuses the change, since networks and zones stay as they were made", former.text())
		}
	}
	stays(now.at("controlPlaneConfig", "zone"), old.at("controlPlaneConfig", "zone"))
	networks, former := now.at("infrastructureConfig", "networks"), old.at("infrastructureConfig", "networks")
	if !networks.set() || !former.set() {
		return r.findings
	}
	for _, name := range []string{"id", "cidr"} {
		stays(networks.at("vpc", name), former.at("vpc", name))
	}
	for _, zone := range networks.at("zones").items() {
		for _, was := range former.at("zones").items() {
			if zone.at("name").text() != was.at("name").text() {
				continue
			}
			for _, name := range []string{"internal", "public", "workers"} {
				stays(zone.at(name), was.at(name))
			}
		}
	}
	for _, name := range []string{"workers", "worker"} {
		field, was := networks.at(name), former.at(name)
		wide, errWide := netip.ParsePrefix(field.text())
		narrow, errNarrow := netip.ParsePrefix(was.text())
		if errWide == nil && errNarrow == nil && (wide.Bits() > narrow.Bits() || !wide.Contains(narrow.Addr())) {
			r.add(field, TypeForbidden, "was %s, and has to have all of it: nodes have addresses there", narrow)
		}
	}
	return r.findings
}

// gcpProjectForm is the form of a project ID
// (https://cloud.google.com/resource-manager/docs/creating-managing-projects).
var gcpProjectForm = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$`)

// identityTarget checks the configuration of a GCP WorkloadIdentity by the rules of its extension:
// no setting may send a token elsewhere than Gardener does.
func identityTarget(in ruleInput) []finding {
	r, config := &report{}, tree{value: in.object}.at("spec", "targetSystem", "providerConfig")
	if !strings.HasPrefix(config.at("apiVersion").text(), "gcp.") {
		return nil
	}
	if project := config.at("projectID"); project.text() != "" && !gcpProjectForm.MatchString(project.text()) {
		r.add(project, TypeInvalid, "%q is no ID of a project: 6 to 30 small letters, digits and hyphens", project.text())
	}
	credentials := config.at("credentialsConfig")
	if typ := credentials.at("type"); typ.set() && typ.text() != "external_account" {
		r.add(typ, TypeNotSupported, "%q has no identity of a workload: the type is external_account", typ.text())
	}
	for _, name := range []string{"token_url", "service_account_impersonation_url"} {
		if url := credentials.at(name); url.text() != "" && !strings.HasPrefix(url.text(), "https://") {
			r.add(url, TypeInvalid, "%q is no URL with https, which tokens are sent to", url.text())
		}
	}
	if source := credentials.at("credential_source"); source.set() {
		r.add(source, TypeForbidden, "must not be set: the extension brings the token")
	}
	return r.findings
}
