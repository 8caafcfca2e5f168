package schemas

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// architectures lists the architectures that Gardener supports.
var architectures = [...]string{"amd64", "arm64"}

const capabilityArchitecture = "architecture"

// profileCapabilities maps the capabilities that machines and images can differ in to their values.
type profileCapabilities map[string][]string

func readCapabilities(in ruleInput) profileCapabilities {
	capabilities := profileCapabilities{}
	for _, definition := range (tree{value: in.object}).at("spec", "machineCapabilities").items() {
		capabilities[definition.at("name").text()] = definition.at("values").texts()
	}
	return capabilities
}

// capabilityDefinitions checks spec.machineCapabilities. Like upstream, it reports the name of a
// capability instead of its index.
func capabilityDefinitions(in ruleInput) []finding {
	r, list, seen := &report{}, tree{value: in.object}.at("spec", "machineCapabilities"), map[string]bool{}
	for _, definition := range list.items() {
		name := definition.at("name")
		if seen[name.text()] {
			r.add(name, TypeDuplicate, "the capability %q is defined already", name.text())
		}
		seen[name.text()] = true
		switch {
		case name.text() == "":
			r.add(list, TypeRequired, "every capability must have a name")
		case !isUnprefixedName(name.text()):
			r.add(list, TypeInvalid, "the name %q must have letters, digits, '-', '_' and '.' only, at most 63", name.text())
		}
		values := definition.at("values").as(list.path + "." + name.text())
		if len(values.items()) == 0 {
			r.add(values, TypeRequired, "must list at least one value")
		}
		for _, value := range values.items() {
			switch {
			case value.text() == "":
				r.add(value, TypeRequired, "must not be empty")
			case !isUnprefixedName(value.text()):
				r.add(value, TypeInvalid, "%q must have letters, digits, '-', '_' and '.' only, at most 63", value.text())
			case name.text() == capabilityArchitecture && !slices.Contains(architectures[:], value.text()):
				r.add(values, TypeInvalid, "%q is no architecture that Gardener knows, which are %s", value.text(), quotedList(architectures[:]))
			}
		}
	}
	if len(list.items()) > 0 && !seen[capabilityArchitecture] {
		r.add(list.at(capabilityArchitecture), TypeRequired, "must be among the capabilities")
	}
	return r.findings
}

func isUnprefixedName(name string) bool {
	return len(utilvalidation.IsQualifiedName(name)) == 0 && !strings.Contains(name, "/")
}

func capabilityUses(in ruleInput) []finding {
	r, defined, spec := &report{}, readCapabilities(in), tree{value: in.object}.at("spec")
	for _, machine := range spec.at("machineTypes").items() {
		used := machine.at("capabilities")
		if len(defined) == 0 {
			if len(used.keys()) > 0 {
				r.add(used, TypeForbidden, "must not be set, because spec.machineCapabilities defines none")
			}
			continue
		}
		r.capabilities(defined, used, used)
		own := used.at(capabilityArchitecture).texts()
		field := machine.at(capabilityArchitecture)
		if len(own) > 1 {
			r.add(used.at(capabilityArchitecture), TypeInvalid, "lists %d architectures, but a machine has one", len(own))
		}
		if len(own) == 1 && field.set() && field.text() != own[0] {
			r.add(field, TypeInvalid, "%q is not %q, which capabilities.architecture says", field.text(), own[0])
		}
	}
	for _, image := range spec.at("machineImages").items() {
		for _, version := range image.at("versions").items() {
			r.imageCapabilities(defined, version)
		}
	}
	return r.findings
}

// capabilities checks values against their definitions.
func (r *report) capabilities(defined profileCapabilities, used, at tree) {
	for _, name := range used.keys() {
		allowed, known := defined[name]
		if !known {
			r.add(at, TypeNotSupported, "the capability %q is not defined in spec.machineCapabilities", name)
			continue
		}
		for _, value := range used.at(name).items() {
			r.oneOf(value, allowed...)
		}
	}
}

func (r *report) imageCapabilities(defined profileCapabilities, version tree) {
	flavors, field := version.at("capabilityFlavors"), version.at("architectures")
	if len(defined) == 0 {
		if len(flavors.items()) > 0 {
			r.add(flavors, TypeForbidden, "must not be set, because spec.machineCapabilities defines none")
		}
		for _, architecture := range field.items() {
			r.oneOf(architecture, architectures[:]...)
		}
		return
	}
	several := len(defined[capabilityArchitecture]) > 1
	if several && len(flavors.items()) == 0 {
		r.add(flavors, TypeRequired, "must list at least one flavor, because spec.machineCapabilities has several architectures")
		return
	}
	var found []string
	for _, flavor := range flavors.items() {
		own := flavor.at(capabilityArchitecture)
		found = append(found, own.texts()...)
		switch {
		case len(own.items()) == 0 && several:
			r.add(own, TypeRequired, "must name one architecture, because spec.machineCapabilities has several")
		case len(own.items()) > 1:
			r.add(own, TypeInvalid, "lists %d architectures, but a flavor has one", len(own.items()))
		}
		r.capabilities(defined, flavor, flavor)
	}
	if len(found) == 0 && !several {
		found = defined[capabilityArchitecture]
	}
	for _, architecture := range field.items() {
		if !slices.Contains(found, architecture.text()) {
			r.add(field, TypeInvalid, "has %q, but the flavors of the version are for %s", architecture.text(), quotedList(found))
		}
		r.oneOf(architecture, defined[capabilityArchitecture]...)
	}
}

func profileAmounts(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	for _, machine := range spec.at("machineTypes").items() {
		for _, name := range []string{"cpu", "gpu", "memory"} {
			r.amount(machine.at(name), name)
		}
		r.quantities(machine.at("storage", "size"), machine.at("storage", "minSize"))
	}
	for _, volume := range spec.at("volumeTypes").items() {
		r.quantities(volume.at("minSize"))
	}
	return r.findings
}

func profileSelectors(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	r.labelSelector(spec.at("seedSelector"))
	for _, region := range spec.at("regions").items() {
		selector := &report{}
		selector.labelSelector(tree{path: "x", value: map[string]any{"matchLabels": region.at("labels").value}})
		for _, f := range selector.findings {
			r.add(region.at("labels"), f.typ, "%s", f.message)
		}
	}
	return r.findings
}

func profileCABundle(in ruleInput) []finding {
	r, bundle := &report{}, tree{value: in.object}.at("spec", "caBundle")
	if !bundle.set() {
		return nil
	}
	block, _ := pem.Decode([]byte(bundle.text()))
	if block == nil || block.Type != "CERTIFICATE" {
		r.add(bundle, TypeInvalid, "is no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----")
	} else if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		r.add(bundle, TypeInvalid, "is a certificate that cannot be read: %v", err)
	}
	return r.findings
}
