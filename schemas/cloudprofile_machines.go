// SPDX-License-Identifier: Apache-2.0

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
	for _, definition := range (fieldValue{value: in.object}).lookup("spec", "machineCapabilities").items() {
		capabilities[definition.lookup("name").text()] = definition.lookup("values").texts()
	}
	return capabilities
}

// checkCapabilityDefinitions checks spec.machineCapabilities. Like upstream, it reports the name of
// a capability instead of its index.
func checkCapabilityDefinitions(in ruleInput) []finding {
	r, list, seen := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "machineCapabilities"), map[string]bool{}
	for _, definition := range list.items() {
		name := definition.lookup("name")
		if seen[name.text()] {
			r.add(name, TypeDuplicate, "the capability %q is already defined", name.text())
		}
		seen[name.text()] = true
		switch {
		case name.text() == "":
			r.add(list, TypeRequired, "every capability must have a name")
		case !isUnprefixedName(name.text()):
			r.add(list, TypeInvalid, "the name %q must have letters, digits, '-', '_' and '.' only, at most 63", name.text())
		}
		values := definition.lookup("values").withPath(list.path + "." + name.text())
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
				r.add(values, TypeInvalid, "%q is not an architecture that Gardener knows; use one of %s", value.text(), quotedList(architectures[:]))
			}
		}
	}
	if len(list.items()) > 0 && !seen[capabilityArchitecture] {
		r.add(list.lookup(capabilityArchitecture), TypeRequired, "must be among the capabilities")
	}
	return r.findings
}

func isUnprefixedName(name string) bool {
	return len(utilvalidation.IsQualifiedName(name)) == 0 && !strings.Contains(name, "/")
}

func checkCapabilityUses(in ruleInput) []finding {
	r, defined, spec := &findingCollector{}, readCapabilities(in), fieldValue{value: in.object}.lookup("spec")
	for _, machine := range spec.lookup("machineTypes").items() {
		used := machine.lookup("capabilities")
		if len(defined) == 0 {
			if len(used.keys()) > 0 {
				r.add(used, TypeForbidden, "must not be set, because spec.machineCapabilities defines none")
			}
			continue
		}
		r.checkCapabilities(defined, used, used)
		own := used.lookup(capabilityArchitecture).texts()
		field := machine.lookup(capabilityArchitecture)
		if len(own) > 1 {
			r.add(used.lookup(capabilityArchitecture), TypeInvalid, "lists %d architectures, but a machine has one", len(own))
		}
		if len(own) == 1 && field.isSet() && field.text() != own[0] {
			r.add(field, TypeInvalid, "%q is not %q, the value of capabilities.architecture", field.text(), own[0])
		}
	}
	for _, image := range spec.lookup("machineImages").items() {
		for _, version := range image.lookup("versions").items() {
			r.checkImageCapabilities(defined, version)
		}
	}
	return r.findings
}

// checkCapabilities checks values against their definitions.
func (r *findingCollector) checkCapabilities(defined profileCapabilities, used, at fieldValue) {
	for _, name := range used.keys() {
		allowed, known := defined[name]
		if !known {
			r.add(at, TypeNotSupported, "the capability %q is not defined in spec.machineCapabilities", name)
			continue
		}
		for _, value := range used.lookup(name).items() {
			r.requireOneOf(value, allowed...)
		}
	}
}

func (r *findingCollector) checkImageCapabilities(defined profileCapabilities, version fieldValue) {
	flavors, field := version.lookup("capabilityFlavors"), version.lookup("architectures")
	if len(defined) == 0 {
		if len(flavors.items()) > 0 {
			r.add(flavors, TypeForbidden, "must not be set, because spec.machineCapabilities defines none")
		}
		for _, architecture := range field.items() {
			r.requireOneOf(architecture, architectures[:]...)
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
		own := flavor.lookup(capabilityArchitecture)
		found = append(found, own.texts()...)
		switch {
		case len(own.items()) == 0 && several:
			r.add(own, TypeRequired, "must name one architecture, because spec.machineCapabilities has several")
		case len(own.items()) > 1:
			r.add(own, TypeInvalid, "lists %d architectures, but a flavor has one", len(own.items()))
		}
		r.checkCapabilities(defined, flavor, flavor)
	}
	if len(found) == 0 && !several {
		found = defined[capabilityArchitecture]
	}
	for _, architecture := range field.items() {
		if !slices.Contains(found, architecture.text()) {
			r.add(field, TypeInvalid, "has %q, but the flavors of the version are for %s", architecture.text(), quotedList(found))
		}
		r.requireOneOf(architecture, defined[capabilityArchitecture]...)
	}
}

func checkProfileAmounts(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	for _, machine := range spec.lookup("machineTypes").items() {
		for _, name := range []string{"cpu", "gpu", "memory"} {
			r.checkResourceAmount(machine.lookup(name), name)
		}
		r.requireNonNegativeQuantities(machine.lookup("storage", "size"), machine.lookup("storage", "minSize"))
	}
	for _, volume := range spec.lookup("volumeTypes").items() {
		r.requireNonNegativeQuantities(volume.lookup("minSize"))
	}
	return r.findings
}

func checkProfileSelectors(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	r.checkLabelSelector(spec.lookup("seedSelector"))
	for _, region := range spec.lookup("regions").items() {
		selector := &findingCollector{}
		selector.checkLabelSelector(fieldValue{path: "x", value: map[string]any{"matchLabels": region.lookup("labels").value}})
		for _, f := range selector.findings {
			r.add(region.lookup("labels"), f.typ, "%s", f.message)
		}
	}
	return r.findings
}

func checkProfileCABundle(in ruleInput) []finding {
	r, bundle := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "caBundle")
	if !bundle.isSet() {
		return nil
	}
	block, _ := pem.Decode([]byte(bundle.text()))
	if block == nil || block.Type != "CERTIFICATE" {
		r.add(bundle, TypeInvalid, "is not a certificate in PEM, which begins with -----BEGIN CERTIFICATE-----")
	} else if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		r.add(bundle, TypeInvalid, "is a certificate that cannot be read: %v", err)
	}
	return r.findings
}
