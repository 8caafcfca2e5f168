// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"crypto/x509"
	"encoding/pem"
	"regexp"
	"slices"
	"strconv"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

const (
	maxPoolNameLength = 15
	maxSysctlLength   = 4096 - len("/proc/sys/")
	reservedTaint     = "node.gardener.cloud/critical-components-not-ready"
)

var sysctlPattern = regexp.MustCompile(`^(?:(?:[a-zA-Z0-9-][a-zA-Z0-9_/-]*|\*)\.)*[a-zA-Z0-9_/-]*[a-zA-Z0-9]$`)

// checkShootWorkerForms checks texts of a worker pool.
func checkShootWorkerForms(r *findingCollector, s shoot) {
	for _, worker := range s.workers {
		r.checkPoolName(worker.lookup("name"))
		if machine := worker.lookup("machine"); machine.lookup("type").isSet() && machine.lookup("type").text() == "" {
			r.add(machine.lookup("type"), TypeRequired, "must name the type of the machines")
		}
		if image := worker.lookup("machine", "image", "name"); image.isSet() && image.text() == "" {
			r.add(image, TypeRequired, "must name the machine image")
		}
		r.checkLabels(worker.lookup("labels"))
		for _, key := range worker.lookup("annotations").keys() {
			if len(utilvalidation.IsQualifiedName(strings.ToLower(key))) > 0 {
				r.add(worker.lookup("annotations"), TypeInvalid, "the key %q %s", key, qualifiedNameMessage)
			}
		}
		if bundle := worker.lookup("caBundle"); bundle.isSet() && !isCertificate(bundle.text()) {
			r.add(bundle, TypeInvalid, "must be a certificate in PEM")
		}
		r.checkVolumeNames(worker)
		r.checkSysctls(worker.lookup("sysctls"))
		if priority, ok := worker.lookup("priority").number(); ok && priority < -1 {
			r.add(worker.lookup("priority"), TypeInvalid, "%v is too small: it must be -1 or more", priority)
		}
	}
}

func (r *findingCollector) checkPoolName(name fieldValue) {
	if problems := utilvalidation.IsDNS1123Label(name.text()); name.isSet() && len(problems) > 0 {
		r.add(name, TypeInvalid, "%q %s", name.text(), dnsLabelMessage)
	}
	if length := len(name.text()); length > maxPoolNameLength {
		r.add(name, TypeTooLong, "has %d characters, but may have at most %d", length, maxPoolNameLength)
	}
}

func (r *findingCollector) checkLabels(labels fieldValue) {
	for _, key := range labels.keys() {
		if len(utilvalidation.IsQualifiedName(key)) > 0 {
			r.add(labels, TypeInvalid, "the key %q %s", key, qualifiedNameMessage)
		}
		if value := labels.lookup(key).text(); len(utilvalidation.IsValidLabelValue(value)) > 0 {
			r.add(labels, TypeInvalid, "the value %q of %s %s", value, key, labelValueMessage)
		}
	}
}

func isCertificate(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" {
		return false
	}
	_, err := x509.ParseCertificate(block.Bytes)
	return err == nil
}

func (r *findingCollector) checkVolumeNames(worker fieldValue) {
	if name := worker.lookup("volume", "name"); name.isSet() {
		r.checkVolumeName(name)
	}
	seen := map[string]string{}
	volumes := worker.lookup("dataVolumes").items()
	for _, volume := range volumes {
		name := volume.lookup("name")
		r.checkVolumeName(name)
		if first, double := seen[name.text()]; double {
			r.add(name, TypeDuplicate, "the name %q is taken by %s", name.text(), first)
		} else {
			seen[name.text()] = volume.path
		}
	}
	if len(volumes) > 0 && !worker.lookup("volume").isSet() {
		r.add(worker.lookup("volume"), TypeRequired, "must be set, because the pool has dataVolumes")
	}
	if name := worker.lookup("kubeletDataVolumeName"); name.isSet() && seen[name.text()] == "" {
		r.add(name, TypeInvalid, "%q is not in the dataVolumes of the pool", name.text())
	}
}

func (r *findingCollector) checkVolumeName(name fieldValue) {
	switch {
	case name.text() == "":
		r.add(name, TypeRequired, "must name the volume")
	default:
		r.checkPoolName(name)
	}
}

func (r *findingCollector) checkSysctls(sysctls fieldValue) {
	for _, key := range sysctls.keys() {
		field := sysctls.lookup(key)
		tooLong := slices.ContainsFunc(strings.Split(key, "."), func(part string) bool { return len(part) > 255 })
		switch {
		case !sysctlPattern.MatchString(key):
			r.add(field, TypeInvalid, "%q is not the name of a kernel parameter, such as net.ipv4.ip_forward", key)
		case len(key) > maxSysctlLength:
			r.add(field, TypeTooLong, "the name has %d characters, but may have at most %d", len(key), maxSysctlLength)
		case tooLong:
			r.add(field, TypeInvalid, "no part of the name may have more than 255 characters")
		}
		if field.text() == "" {
			r.add(field, TypeRequired, "must have a value")
		}
	}
}

// checkShootTaints checks the taints of worker pools.
func checkShootTaints(r *findingCollector, s shoot) {
	for _, worker := range s.workers {
		seen := map[string]string{}
		for _, taint := range worker.lookup("taints").items() {
			key, value, effect := taint.lookup("key"), taint.lookup("value"), taint.lookup("effect")
			r.checkTaintKey(key)
			if len(utilvalidation.IsValidLabelValue(value.text())) > 0 {
				r.add(value, TypeInvalid, "%q %s", value.text(), labelValueMessage)
			}
			if effect.isSet() && effect.text() == "" {
				r.add(effect, TypeRequired, "must be one of NoSchedule, PreferNoSchedule and NoExecute")
			} else {
				r.requireOneOf(effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
			}
			if first, double := seen[key.text()+"\x00"+effect.text()]; double {
				r.add(taint, TypeDuplicate, "the key %q with the effect %q is already listed as %s", key.text(), effect.text(), first)
			} else {
				seen[key.text()+"\x00"+effect.text()] = taint.path
			}
		}
	}
}

func (r *findingCollector) checkTaintKey(key fieldValue) {
	if len(utilvalidation.IsQualifiedName(key.text())) > 0 {
		r.add(key, TypeInvalid, "%q %s", key.text(), qualifiedNameMessage)
	} else if key.text() == reservedTaint {
		r.add(key, TypeForbidden, "%q is set by Gardener itself", reservedTaint)
	}
}

// checkShootRolling checks how machines of a pool are replaced. Unset values default as in the API:
// one machine more with AutoRollingUpdate, one less with AutoInPlaceUpdate.
func checkShootRolling(r *findingCollector, s shoot) {
	for _, worker := range s.workers {
		strategy, surge, unavailable := worker.lookup("updateStrategy").text(), worker.lookup("maxSurge"), worker.lookup("maxUnavailable")
		r.checkIntOrPercent(surge)
		r.checkIntOrPercent(unavailable)
		if text := unavailable.text(); percentPattern.MatchString(text) {
			if percent, err := strconv.Atoi(strings.TrimSuffix(text, "%")); err != nil || percent > 100 {
				r.add(unavailable, TypeInvalid, "%q is out of range: it must not be above 100%%", text)
			}
		}
		switch strategy {
		case "ManualInPlaceUpdate":
			for _, field := range []fieldValue{surge, unavailable} {
				if field.isSet() {
					r.add(field, TypeInvalid, "must not be set with ManualInPlaceUpdate: you choose the nodes yourself")
				}
			}
			continue
		case "AutoInPlaceUpdate":
			surge, unavailable = withDefaultNumber(surge, 0), withDefaultNumber(unavailable, 1)
		default:
			surge, unavailable = withDefaultNumber(surge, 1), withDefaultNumber(unavailable, 0)
		}
		if isZero(surge) && isZero(unavailable) {
			r.add(unavailable, TypeInvalid, "must not be zero together with maxSurge: an update could neither add nor remove a machine")
		}
	}
}

func withDefaultNumber(field fieldValue, value int) fieldValue {
	if !field.isSet() {
		field.value = value
	}
	return field
}

func isZero(field fieldValue) bool {
	if number, ok := field.number(); ok {
		return number == 0
	}
	number, err := strconv.Atoi(strings.TrimSuffix(field.text(), "%"))
	return err != nil || number == 0
}

func (r *findingCollector) checkIntOrPercent(field fieldValue) {
	if number, ok := field.number(); ok && number < 0 {
		r.add(field, TypeInvalid, "%v is negative; it must be 0 or more", number)
	} else if text, isText := field.value.(string); isText && !percentPattern.MatchString(text) {
		r.add(field, TypeInvalid, "%q must be a number of machines, or a percentage, such as 25%%", text)
	}
}

// checkShootPoolSettings checks the autoscaler and machine controller manager settings of a pool.
// Upstream reports them under the field names in its code.
func checkShootPoolSettings(r *findingCollector, s shoot) {
	for _, worker := range s.workers {
		scaler := worker.lookup("clusterAutoscaler").withPath(worker.path + ".autoscaler")
		r.requireRange(scaler.lookup("scaleDownUtilizationThreshold"), 0, 1)
		r.requireRange(scaler.lookup("scaleDownGpuUtilizationThreshold"), 0, 1)
		r.requireMinimumDurations(0, scaler.lookup("scaleDownUnneededTime"), scaler.lookup("scaleDownUnreadyTime"), scaler.lookup("maxNodeProvisionTime"))

		manager := worker.lookup("machineControllerManager").withPath(worker.path + ".machineControllerManagerSettings")
		r.requireMinimumDurations(0, manager.lookup("machineDrainTimeout"), manager.lookup("machineHealthTimeout"), manager.lookup("machineCreationTimeout"), manager.lookup("machinePreserveTimeout"))
		r.requireNonNegative(manager.lookup("maxEvictRetries"))
		r.checkPreservedMachines(manager.lookup("autoPreserveFailedMachineMax"), worker)
		if timeout := manager.lookup("inPlaceUpdateTimeout"); isUpdatedInPlace(worker) {
			r.requireMinimumDurations(0, timeout)
		} else if timeout.isSet() {
			r.add(timeout, TypeForbidden, "has no effect, because the machines are not updated in place; see updateStrategy")
		}
		if disable := manager.lookup("disableHealthTimeout"); disable.isTrue() && !isUpdatedInPlace(worker) {
			r.add(disable, TypeForbidden, "is only for machines that are updated in place; see updateStrategy")
		}
		seen := map[string]string{}
		for _, runtime := range worker.lookup("cri", "containerRuntimes").withPath(worker.path + ".cri.containerruntimes").items() {
			name := runtime.lookup("type")
			if first, double := seen[name.text()]; double {
				r.add(name, TypeDuplicate, "the container runtime %q is already listed as %s", name.text(), first)
			} else if name.text() == "" {
				r.add(name, TypeRequired, "must name the container runtime")
			}
			seen[name.text()] = runtime.path
		}
	}
}

// checkPreservedMachines checks how many failed machines a pool may preserve: one machine is left
// for system components.
func (r *findingCollector) checkPreservedMachines(field, worker fieldValue) {
	maximum, allow := worker.lookup("maximum").integer(), worker.lookup("systemComponents", "allow")
	most := maximum
	if maximum > 0 && (!allow.isSet() || allow.isTrue()) {
		most--
	}
	switch {
	case !field.isSet():
	case field.integer() < 0:
		r.requireNonNegative(field)
	case field.integer() > most:
		r.add(field, TypeInvalid, "%d is too large: with a maximum of %d machines, at most %d failed ones can be preserved, because system components need one", field.integer(), maximum, most)
	}
}

// checkShootSystemPools checks that system components find a node in every zone. Pools with the
// same zones count together.
func checkShootSystemPools(r *findingCollector, s shoot) {
	if len(s.workers) == 0 {
		return
	}
	enough, short, found := map[string]bool{}, map[string]int{}, false
	for i, worker := range s.workers {
		allow := worker.lookup("systemComponents", "allow")
		if allow.isSet() && !allow.isTrue() || worker.lookup("maximum").integer() == 0 {
			continue
		}
		found = true
		zones := worker.lookup("zones").texts()
		slices.Sort(zones)
		key := strings.Join(slices.Compact(slices.Clone(zones)), "\x00")
		if worker.lookup("maximum").integer() >= len(zones) {
			enough[key] = true
		} else {
			short[key] = i
		}
	}
	for key, i := range short {
		if !enough[key] {
			field := s.workers[i].lookup("maximum")
			r.add(field, TypeForbidden, "%d is below the number of zones, %d: the components of the system need a node in every zone", field.integer(), len(s.workers[i].lookup("zones").items()))
		}
	}
	if !found {
		r.add(s.spec.lookup("provider", "workers"), TypeForbidden, "at least one pool with a maximum above 0 must allow components of the system (systemComponents.allow)")
	}
}
