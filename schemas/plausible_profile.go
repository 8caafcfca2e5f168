// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// This file has the warnings about implausible values of a CloudProfile; gorules_plausible.go lists
// them.

func checkUnavailableTypes(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	for _, of := range [][2]string{{"machineTypes", "unavailableMachineTypes"}, {"volumeTypes", "unavailableVolumeTypes"}} {
		var known []string
		for _, typ := range spec.lookup(of[0]).items() {
			known = append(known, typ.lookup("name").text())
		}
		for _, item := range fieldsAtPath(spec, "regions[].zones[]."+of[1]+"[]") {
			if name := item.text(); name != "" && !slices.Contains(known, name) {
				r.add(item, TypeNotSupported, "%q is not in spec.%s%s", name, of[0], suggestionHint(name, known))
			}
		}
	}
	return r.findings
}

func checkImageMappings(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	mapped := spec.lookup("providerConfig", "machineImages")
	if !isList(mapped) {
		return nil
	}
	known := map[[2]string]map[string]bool{}
	for _, image := range mapped.items() {
		name := image.lookup("name").text()
		known[[2]string{name}] = map[string]bool{}
		for _, version := range image.lookup("versions").items() {
			key := [2]string{name, version.lookup("version").text()}
			if known[key] == nil {
				known[key] = map[string]bool{}
			}
			maps.Copy(known[key], mappedArchitectures(version))
		}
	}
	for _, image := range spec.lookup("machineImages").items() {
		name := image.lookup("name").text()
		if known[[2]string{name}] == nil {
			r.add(image.lookup("name"), TypeInvalid, "%s has no machine image %q", mapped.path, name)
			continue
		}
		for _, version := range image.lookup("versions").items() {
			text := version.lookup("version").text()
			architectures := known[[2]string{name, text}]
			if text != "" && architectures == nil {
				r.add(version.lookup("version"), TypeInvalid, "%s has no version %s of the machine image %q", mapped.path, text, name)
			}
			for _, architecture := range version.lookup("architectures").items() {
				if len(architectures) > 0 && !architectures[architecture.text()] {
					r.add(architecture, TypeInvalid, "%s has no image of the version %s of %q for %s", mapped.path, text, name, architecture.text())
				}
			}
		}
	}
	return r.findings
}

// defaultArchitecture applies where none is named (pkg/apis/core/v1beta1/constants,
// ArchitectureAMD64).
const defaultArchitecture = "amd64"

// mappedArchitectures returns the architectures for which a provider configuration has a version of
// an image, listed for the version or for a region.
func mappedArchitectures(version fieldValue) map[string]bool {
	out := map[string]bool{}
	add := func(of fieldValue) {
		if name := of.lookup("architecture").text(); name != "" {
			out[name] = true
		} else {
			out[defaultArchitecture] = true
		}
	}
	if len(version.lookup("capabilityFlavors").items()) > 0 {
		return out // capabilities name them
	}
	regions := version.lookup("regions").items()
	for _, region := range regions {
		add(region)
	}
	if len(regions) == 0 {
		add(version)
	}
	return out
}

// amiPattern is the form of an AWS image ID
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html).
var amiPattern = regexp.MustCompile("^ami-([0-9a-f]{8}|[0-9a-f]{17})$")

func checkImageRegions(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	var known []string
	for _, region := range spec.lookup("regions").items() {
		known = append(known, region.lookup("name").text())
	}
	for _, version := range fieldsAtPath(spec, "providerConfig.machineImages[].versions[]") {
		seen := map[string]fieldValue{}
		for _, region := range version.lookup("regions").items() {
			if name := region.lookup("name"); name.text() != "" && len(known) > 0 && !slices.Contains(known, name.text()) {
				r.add(name, TypeInvalid, "%q is not in spec.regions%s", name.text(), suggestionHint(name.text(), known))
			}
			ami := region.lookup("ami")
			if ami.text() == "" {
				continue
			}
			if !amiPattern.MatchString(ami.text()) {
				r.add(ami, TypeInvalid, "%q is not the ID of an image, such as ami-0123456789abcdef0", ami.text())
			}
			if other, has := seen[ami.text()]; has {
				r.add(ami, TypeDuplicate, "%s is the same image; an image is for one region and architecture", other.path)
			}
			seen[ami.text()] = ami
		}
	}
	return r.findings
}

// Bounds of the memory and the cores of a machine type.
const (
	minMachineMemory     = 256 << 20
	maxMachineMemory     = 64 << 40
	minMachineMillicores = 100 // thousandths
	maxMachineCores      = 2000
)

func checkMachineAmounts(in ruleInput) []finding {
	r := &findingCollector{}
	types := fieldsAtPath(fieldValue{value: in.object}, "spec.machineTypes[]")
	binary := slices.ContainsFunc(types, func(typ fieldValue) bool { return strings.HasSuffix(typ.lookup("memory").text(), "Gi") })
	for _, typ := range types {
		if memory, ok := typ.lookup("memory").quantity(); ok && memory.Sign() > 0 && (memory.CmpInt64(minMachineMemory) < 0 || memory.CmpInt64(maxMachineMemory) > 0) {
			r.add(typ.lookup("memory"), TypeInvalid, "no machine has %v of memory", typ.lookup("memory").value)
		}
		if memory := typ.lookup("memory").text(); strings.HasSuffix(memory, "G") && binary {
			r.add(typ.lookup("memory"), TypeInvalid, "%s is less than %si, the unit of other machine types of the profile: nodes have more than the autoscaler expects", memory, memory)
		}
		if cores, ok := typ.lookup("cpu").quantity(); ok && cores.Sign() > 0 && (cores.MilliValue() < minMachineMillicores || cores.CmpInt64(maxMachineCores) > 0) {
			r.add(typ.lookup("cpu"), TypeInvalid, "no machine has %v cores", typ.lookup("cpu").value)
		}
	}
	for _, class := range fieldsAtPath(fieldValue{value: in.object}, "spec.volumeTypes[].class") {
		known := []string{"premium", "standard"}
		if meant := suggest.ClosestWithin(class.text(), known, 2); meant != "" && !slices.Contains(known, class.text()) {
			r.add(class, TypeNotSupported, "a Quota counts volumes of the class %q; did you mean that one?", meant)
		}
	}
	return r.findings
}

func checkSupportedVersions(in ruleInput) []finding {
	r, versions := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "kubernetes", "versions")
	items := versions.items()
	if len(items) > 0 && !slices.ContainsFunc(items, func(v fieldValue) bool {
		return v.lookup("lifecycle").isSet() || slices.Contains([]string{"", "supported"}, v.lookup("classification").text())
	}) {
		r.add(versions, TypeInvalid, "no version has the classification supported, so a Shoot must name its full version and is never updated")
	}
	return r.findings
}

func checkEarlierExpiration(in ruleInput) []finding {
	r := &findingCollector{}
	if in.old == nil {
		return nil
	}
	former := map[string]string{}
	for _, path := range []string{"spec.kubernetes.versions[]", "spec.machineImages[].versions[]"} {
		for _, version := range fieldsAtPath(fieldValue{value: in.old}, path) {
			former[path+version.lookup("version").text()] = version.lookup("expirationDate").text()
		}
		for _, version := range fieldsAtPath(fieldValue{value: in.object}, path) {
			field, number := version.lookup("expirationDate"), version.lookup("version").text()
			was, errWas := time.Parse(time.RFC3339, former[path+number])
			now, errNow := time.Parse(time.RFC3339, field.text())
			if errWas == nil && errNow == nil && now.Before(was) {
				r.add(field, TypeInvalid, "version %s expires earlier than before the change (%s), so Shoots have less time for their update", number, former[path+number])
			}
		}
	}
	return r.findings
}
