package schemas

import "slices"

// This file has the warnings about values of a CloudProfile that nobody means; gorules_plausible.go lists them.

func unavailableTypes(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	for _, of := range [][2]string{{"machineTypes", "unavailableMachineTypes"}, {"volumeTypes", "unavailableVolumeTypes"}} {
		var known []string
		for _, typ := range spec.at(of[0]).items() {
			known = append(known, typ.at("name").text())
		}
		for _, item := range each(spec, "regions[].zones[]."+of[1]+"[]") {
			if name := item.text(); name != "" && !slices.Contains(known, name) {
				r.add(item, TypeNotSupported, "%q is none of spec.%s%s", name, of[0], meant(name, known))
			}
		}
	}
	return r.findings
}

func imageMappings(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	mapped := spec.at("providerConfig", "machineImages")
	if !isList(mapped) {
		return nil
	}
	known := map[[2]string]bool{}
	for _, image := range mapped.items() {
		name := image.at("name").text()
		known[[2]string{name}] = true
		for _, version := range image.at("versions").items() {
			known[[2]string{name, version.at("version").text()}] = true
		}
	}
	for _, image := range spec.at("machineImages").items() {
		name := image.at("name").text()
		if !known[[2]string{name}] {
			r.add(image.at("name"), TypeInvalid, "%s has no machine image %q", mapped.path, name)
			continue
		}
		for _, version := range image.at("versions").items() {
			if text := version.at("version").text(); text != "" && !known[[2]string{name, text}] {
				r.add(version.at("version"), TypeInvalid, "%s has no version %s of the machine image %q", mapped.path, text, name)
			}
		}
	}
	return r.findings
}

// leastMachine and mostMachine bound the memory of a machine type, as its cores.
const (
	leastMachineMemory = 256 << 20
	mostMachineMemory  = 64 << 40
	leastMachineCores  = 100 // thousandths
	mostMachineCores   = 2000
)

func machineAmounts(in ruleInput) []finding {
	r := &report{}
	for _, typ := range each(tree{value: in.object}, "spec.machineTypes[]") {
		if memory, ok := typ.at("memory").quantity(); ok && memory.Sign() > 0 && (memory.CmpInt64(leastMachineMemory) < 0 || memory.CmpInt64(mostMachineMemory) > 0) {
			r.add(typ.at("memory"), TypeInvalid, "no machine has %v of memory", typ.at("memory").value)
		}
		if cores, ok := typ.at("cpu").quantity(); ok && cores.Sign() > 0 && (cores.MilliValue() < leastMachineCores || cores.CmpInt64(mostMachineCores) > 0) {
			r.add(typ.at("cpu"), TypeInvalid, "no machine has %v cores", typ.at("cpu").value)
		}
	}
	for _, class := range each(tree{value: in.object}, "spec.volumeTypes[].class") {
		known := []string{"premium", "standard"}
		if meant := SuggestWithin(class.text(), known, 2); meant != "" && !slices.Contains(known, class.text()) {
			r.add(class, TypeNotSupported, "a Quota counts volumes of the class %q; did you mean that one?", meant)
		}
	}
	return r.findings
}
