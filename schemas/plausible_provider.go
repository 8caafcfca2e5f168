// SPDX-License-Identifier: Apache-2.0

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

func configKindsCheck(kind string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &findingCollector{}
		for _, at := range slices.Sorted(maps.Keys(configKinds[kind])) {
			want := configKinds[kind][at]
			for _, config := range fieldsAtPath(fieldValue{value: in.object}, at) {
				of := config.lookup("kind")
				isOfProvider := strings.Contains(config.lookup("apiVersion").text(), ".provider.extensions.gardener.cloud/") || strings.Contains(config.lookup("apiVersion").text(), ".networking.extensions.gardener.cloud/")
				if isOfProvider && of.text() != want && slices.Contains(slices.Collect(maps.Values(configKinds["Shoot"])), of.text()) {
					r.add(of, TypeNotSupported, "the extension reads a %s here, and not %s", want, of.text())
				}
			}
		}
		return r.findings
	}
}

func checkInfrastructureFit(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	config := spec.lookup("provider", "infrastructureConfig")
	networks := config.lookup("networks")
	if nodes, err := netip.ParsePrefix(spec.lookup("networking", "nodes").text()); err == nil {
		for _, field := range slices.Concat([]fieldValue{networks.lookup("workers"), networks.lookup("worker")}, fieldsAtPath(networks, "zones[].workers")) {
			if subnet, err := netip.ParsePrefix(field.text()); err == nil && (!nodes.Contains(subnet.Addr()) || subnet.Bits() < nodes.Bits()) {
				r.add(field, TypeInvalid, "the range %s is not within %s of spec.networking.nodes", subnet, nodes)
			}
		}
	}
	if vpc := networks.lookup("vpc"); vpc.lookup("id").text() != "" && vpc.lookup("cidr").text() != "" {
		r.add(vpc.lookup("cidr"), TypeForbidden, "an existing network (id) already has its range; set id or cidr, not both")
	}
	for _, id := range slices.Concat([]fieldValue{networks.lookup("vpc", "id")}, fieldsAtPath(networks, "zones[].elasticIPAllocationID")) {
		form := "vpc-"
		if strings.HasSuffix(id.path, "elasticIPAllocationID") {
			form = "eipalloc-"
		}
		if id.text() != "" && strings.HasPrefix(config.lookup("apiVersion").text(), "aws.") && !strings.HasPrefix(id.text(), form) {
			r.add(id, TypeInvalid, "%q is not such an ID of AWS, which begins with %s", id.text(), form)
		}
	}
	nat := networks.lookup("cloudNAT")
	if least, most := nat.lookup("minPortsPerVM"), nat.lookup("maxPortsPerVM"); most.isSet() && most.integer() < least.integer() {
		r.add(most, TypeInvalid, "%v is below %v of %s", most.value, least.value, least.path)
	}
	var zones []string
	for _, zone := range fieldsAtPath(spec, "provider.workers[].zones[]") {
		zones = append(zones, zone.text())
	}
	if zone := spec.lookup("provider", "controlPlaneConfig", "zone"); zone.text() != "" && len(zones) > 0 && !slices.Contains(zones, zone.text()) {
		r.add(zone, TypeInvalid, "no pool of workers has machines in the zone %q%s", zone.text(), suggestionHint(zone.text(), zones))
	}
	for _, worker := range spec.lookup("provider", "workers").items() {
		var volumes []string
		for _, volume := range worker.lookup("dataVolumes").items() {
			volumes = append(volumes, volume.lookup("name").text())
		}
		config := worker.lookup("providerConfig")
		if profile := config.lookup("iamInstanceProfile"); profile.lookup("name").text() != "" && profile.lookup("arn").text() != "" {
			r.add(profile, TypeForbidden, "set name or arn, not both: they have the same meaning")
		}
		for _, volume := range config.lookup("dataVolumes").items() {
			if name := volume.lookup("name"); name.text() != "" && !slices.Contains(volumes, name.text()) {
				r.add(name, TypeInvalid, "the pool has no data volume %q%s", name.text(), suggestionHint(name.text(), volumes))
			}
		}
		if !strings.HasPrefix(spec.lookup("provider", "type").text(), "aws") {
			continue
		}
		if typ := worker.lookup("volume", "type"); slices.Contains(iopsVolumeTypes, typ.text()) && !config.lookup("volume", "iops").isSet() {
			r.add(typ, TypeInvalid, "a volume of the type %s needs a rate; set providerConfig.volume.iops", typ.text())
		}
		for _, volume := range worker.lookup("dataVolumes").items() {
			rated := slices.ContainsFunc(config.lookup("dataVolumes").items(), func(c fieldValue) bool {
				return c.lookup("name").text() == volume.lookup("name").text() && c.lookup("iops").isSet()
			})
			if typ := volume.lookup("type"); slices.Contains(iopsVolumeTypes, typ.text()) && !rated {
				r.add(typ, TypeInvalid, "a volume of the type %s needs a rate; set iops for it in providerConfig.dataVolumes", typ.text())
			}
		}
	}
	return r.findings
}

// iopsVolumeTypes lists the volume types of AWS that need a rate
// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateVolume.html, Iops).
var iopsVolumeTypes = []string{"io1", "io2"}

// checkInfrastructureUpdate reports changes of existing networks, which extensions refuse.
func checkInfrastructureUpdate(in ruleInput) []finding {
	r := &findingCollector{}
	now, old := fieldValue{value: in.object}.lookup("spec", "provider"), fieldValue{value: in.old}.lookup("spec", "provider")
	stays := func(field, former fieldValue) {
		if former.text() != "" && field.text() != former.text() {
			r.add(field, TypeForbidden, "was %q; the extension rejects the change, because networks and zones cannot change", former.text())
		}
	}
	stays(now.lookup("controlPlaneConfig", "zone"), old.lookup("controlPlaneConfig", "zone"))
	networks, former := now.lookup("infrastructureConfig", "networks"), old.lookup("infrastructureConfig", "networks")
	if !networks.isSet() || !former.isSet() {
		return r.findings
	}
	for _, name := range []string{"id", "cidr"} {
		stays(networks.lookup("vpc", name), former.lookup("vpc", name))
	}
	for _, zone := range networks.lookup("zones").items() {
		for _, was := range former.lookup("zones").items() {
			if zone.lookup("name").text() != was.lookup("name").text() {
				continue
			}
			for _, name := range []string{"internal", "public", "workers"} {
				stays(zone.lookup(name), was.lookup(name))
			}
		}
	}
	for _, name := range []string{"workers", "worker"} {
		field, was := networks.lookup(name), former.lookup(name)
		wide, errWide := netip.ParsePrefix(field.text())
		narrow, errNarrow := netip.ParsePrefix(was.text())
		if errWide == nil && errNarrow == nil && (wide.Bits() > narrow.Bits() || !wide.Contains(narrow.Addr())) {
			r.add(field, TypeForbidden, "was %s and must still contain all of it, because nodes have addresses there", narrow)
		}
	}
	return r.findings
}

// gcpProjectPattern is the form of a project ID
// (https://cloud.google.com/resource-manager/docs/creating-managing-projects).
var gcpProjectPattern = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$`)

// checkWorkloadIdentityTarget checks the configuration of a GCP WorkloadIdentity by the rules of
// its extension: no setting may send a token elsewhere than Gardener does.
func checkWorkloadIdentityTarget(in ruleInput) []finding {
	r, config := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "targetSystem", "providerConfig")
	if !strings.HasPrefix(config.lookup("apiVersion").text(), "gcp.") {
		return nil
	}
	if project := config.lookup("projectID"); project.text() != "" && !gcpProjectPattern.MatchString(project.text()) {
		r.add(project, TypeInvalid, "%q is not the ID of a project: 6 to 30 lower case letters, digits and hyphens", project.text())
	}
	credentials := config.lookup("credentialsConfig")
	if typ := credentials.lookup("type"); typ.isSet() && typ.text() != "external_account" {
		r.add(typ, TypeNotSupported, "%q is not the type of a workload identity; use external_account", typ.text())
	}
	for _, name := range []string{"token_url", "service_account_impersonation_url"} {
		if url := credentials.lookup(name); url.text() != "" && !strings.HasPrefix(url.text(), "https://") {
			r.add(url, TypeInvalid, "%q is not a URL with https; the extension sends tokens to it", url.text())
		}
	}
	if source := credentials.lookup("credential_source"); source.isSet() {
		r.add(source, TypeForbidden, "must not be set: the extension brings the token")
	}
	return r.findings
}
