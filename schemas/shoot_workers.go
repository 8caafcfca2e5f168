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
	longestPoolName = 15
	longestSysctl   = 4096 - len("/proc/sys/")
	reservedTaint   = "node.gardener.cloud/critical-components-not-ready"
)

var sysctlForm = regexp.MustCompile(`^(?:(?:[a-zA-Z0-9-][a-zA-Z0-9_/-]*|\*)\.)*[a-zA-Z0-9_/-]*[a-zA-Z0-9]$`)

// shootWorkerForms checks texts of a worker pool.
func shootWorkerForms(r *report, s shoot) {
	for _, worker := range s.workers {
		r.poolName(worker.at("name"))
		if machine := worker.at("machine"); machine.at("type").set() && machine.at("type").text() == "" {
			r.add(machine.at("type"), TypeRequired, "must name the type of the machines")
		}
		if image := worker.at("machine", "image", "name"); image.set() && image.text() == "" {
			r.add(image, TypeRequired, "must name the machine image")
		}
		r.labels(worker.at("labels"))
		for _, key := range worker.at("annotations").keys() {
			if len(utilvalidation.IsQualifiedName(strings.ToLower(key))) > 0 {
				r.add(worker.at("annotations"), TypeInvalid, "the key %q %s", key, qualifiedWords)
			}
		}
		if bundle := worker.at("caBundle"); bundle.set() && !isCertificate(bundle.text()) {
			r.add(bundle, TypeInvalid, "must be a certificate in PEM")
		}
		r.volumeNames(worker)
		r.sysctls(worker.at("sysctls"))
		if priority, ok := worker.at("priority").number(); ok && priority < -1 {
			r.add(worker.at("priority"), TypeInvalid, "%v is too small: it must be -1 or more", priority)
		}
	}
}

func (r *report) poolName(name tree) {
	if problems := utilvalidation.IsDNS1123Label(name.text()); name.set() && len(problems) > 0 {
		r.add(name, TypeInvalid, "%q %s", name.text(), labelWords)
	}
	if length := len(name.text()); length > longestPoolName {
		r.add(name, TypeTooLong, "has %d characters, but may have at most %d", length, longestPoolName)
	}
}

func (r *report) labels(labels tree) {
	for _, key := range labels.keys() {
		if len(utilvalidation.IsQualifiedName(key)) > 0 {
			r.add(labels, TypeInvalid, "the key %q %s", key, qualifiedWords)
		}
		if value := labels.at(key).text(); len(utilvalidation.IsValidLabelValue(value)) > 0 {
			r.add(labels, TypeInvalid, "the value %q of %s %s", value, key, labelValueWords)
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

func (r *report) volumeNames(worker tree) {
	if name := worker.at("volume", "name"); name.set() {
		r.volumeName(name)
	}
	seen := map[string]string{}
	volumes := worker.at("dataVolumes").items()
	for _, volume := range volumes {
		name := volume.at("name")
		r.volumeName(name)
		if first, double := seen[name.text()]; double {
			r.add(name, TypeDuplicate, "the name %q is taken by %s", name.text(), first)
		} else {
			seen[name.text()] = volume.path
		}
	}
	if len(volumes) > 0 && !worker.at("volume").set() {
		r.add(worker.at("volume"), TypeRequired, "must be set, because the pool has dataVolumes")
	}
	if name := worker.at("kubeletDataVolumeName"); name.set() && seen[name.text()] == "" {
		r.add(name, TypeInvalid, "%q is none of the dataVolumes of the pool", name.text())
	}
}

func (r *report) volumeName(name tree) {
	switch {
	case name.text() == "":
		r.add(name, TypeRequired, "must name the volume")
	default:
		r.poolName(name)
	}
}

func (r *report) sysctls(sysctls tree) {
	for _, key := range sysctls.keys() {
		field := sysctls.at(key)
		tooLong := slices.ContainsFunc(strings.Split(key, "."), func(part string) bool { return len(part) > 255 })
		switch {
		case !sysctlForm.MatchString(key):
			r.add(field, TypeInvalid, "%q is not the name of a kernel parameter, such as net.ipv4.ip_forward", key)
		case len(key) > longestSysctl:
			r.add(field, TypeTooLong, "the name has %d characters, but may have at most %d", len(key), longestSysctl)
		case tooLong:
			r.add(field, TypeInvalid, "no part of the name may have more than 255 characters")
		}
		if field.text() == "" {
			r.add(field, TypeRequired, "must have a value")
		}
	}
}

// shootTaints checks the taints of worker pools.
func shootTaints(r *report, s shoot) {
	for _, worker := range s.workers {
		seen := map[string]string{}
		for _, taint := range worker.at("taints").items() {
			key, value, effect := taint.at("key"), taint.at("value"), taint.at("effect")
			r.taintKey(key)
			if len(utilvalidation.IsValidLabelValue(value.text())) > 0 {
				r.add(value, TypeInvalid, "%q %s", value.text(), labelValueWords)
			}
			if effect.set() && effect.text() == "" {
				r.add(effect, TypeRequired, "must be one of NoSchedule, PreferNoSchedule and NoExecute")
			} else {
				r.oneOf(effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
			}
			if first, double := seen[key.text()+"\x00"+effect.text()]; double {
				r.add(taint, TypeDuplicate, "the key %q with the effect %q is listed already as %s", key.text(), effect.text(), first)
			} else {
				seen[key.text()+"\x00"+effect.text()] = taint.path
			}
		}
	}
}

func (r *report) taintKey(key tree) {
	if len(utilvalidation.IsQualifiedName(key.text())) > 0 {
		r.add(key, TypeInvalid, "%q %s", key.text(), qualifiedWords)
	} else if key.text() == reservedTaint {
		r.add(key, TypeForbidden, "%q is set by Gardener itself", reservedTaint)
	}
}

// shootRolling checks how machines of a pool are replaced. Unset values default as in the API: one
// machine more with AutoRollingUpdate, one less with AutoInPlaceUpdate.
func shootRolling(r *report, s shoot) {
	for _, worker := range s.workers {
		strategy, surge, unavailable := worker.at("updateStrategy").text(), worker.at("maxSurge"), worker.at("maxUnavailable")
		r.intOrPercent(surge)
		r.intOrPercent(unavailable)
		if text := unavailable.text(); percentForm.MatchString(text) {
			if percent, err := strconv.Atoi(strings.TrimSuffix(text, "%")); err != nil || percent > 100 {
				r.add(unavailable, TypeInvalid, "%q is out of range: it must not be above 100%%", text)
			}
		}
		switch strategy {
		case "ManualInPlaceUpdate":
			for _, field := range []tree{surge, unavailable} {
				if field.set() {
					r.add(field, TypeInvalid, "must not be set with ManualInPlaceUpdate: you choose the nodes yourself")
				}
			}
			continue
		case "AutoInPlaceUpdate":
			surge, unavailable = orElse(surge, 0), orElse(unavailable, 1)
		default:
			surge, unavailable = orElse(surge, 1), orElse(unavailable, 0)
		}
		if isZero(surge) && isZero(unavailable) {
			r.add(unavailable, TypeInvalid, "must not be zero together with maxSurge: an update could neither add nor remove a machine")
		}
	}
}

func orElse(field tree, value int) tree {
	if !field.set() {
		field.value = value
	}
	return field
}

func isZero(field tree) bool {
	if number, ok := field.number(); ok {
		return number == 0
	}
	number, err := strconv.Atoi(strings.TrimSuffix(field.text(), "%"))
	return err != nil || number == 0
}

func (r *report) intOrPercent(field tree) {
	if number, ok := field.number(); ok && number < 0 {
		r.add(field, TypeInvalid, "%v is negative; it must be 0 or more", number)
	} else if text, isText := field.value.(string); isText && !percentForm.MatchString(text) {
		r.add(field, TypeInvalid, "%q must be a number of machines, or a percentage, such as 25%%", text)
	}
}

// shootPoolSettings checks the autoscaler and machine controller manager settings of a pool.
// Upstream reports them under the field names in its code.
func shootPoolSettings(r *report, s shoot) {
	for _, worker := range s.workers {
		scaler := worker.at("clusterAutoscaler").as(worker.path + ".autoscaler")
		r.within(scaler.at("scaleDownUtilizationThreshold"), 0, 1)
		r.within(scaler.at("scaleDownGpuUtilizationThreshold"), 0, 1)
		r.durations(0, scaler.at("scaleDownUnneededTime"), scaler.at("scaleDownUnreadyTime"), scaler.at("maxNodeProvisionTime"))

		manager := worker.at("machineControllerManager").as(worker.path + ".machineControllerManagerSettings")
		r.durations(0, manager.at("machineDrainTimeout"), manager.at("machineHealthTimeout"), manager.at("machineCreationTimeout"), manager.at("machinePreserveTimeout"))
		r.notNegative(manager.at("maxEvictRetries"))
		r.preserved(manager.at("autoPreserveFailedMachineMax"), worker)
		if timeout := manager.at("inPlaceUpdateTimeout"); inPlace(worker) {
			r.durations(0, timeout)
		} else if timeout.set() {
			r.add(timeout, TypeForbidden, "has no effect, because the machines are not updated in place; see updateStrategy")
		}
		if disable := manager.at("disableHealthTimeout"); disable.is() && !inPlace(worker) {
			r.add(disable, TypeForbidden, "is only for machines that are updated in place; see updateStrategy")
		}
		seen := map[string]string{}
		for _, runtime := range worker.at("cri", "containerRuntimes").as(worker.path + ".cri.containerruntimes").items() {
			name := runtime.at("type")
			if first, double := seen[name.text()]; double {
				r.add(name, TypeDuplicate, "the container runtime %q is listed already as %s", name.text(), first)
			} else if name.text() == "" {
				r.add(name, TypeRequired, "must name the container runtime")
			}
			seen[name.text()] = runtime.path
		}
	}
}

// preserved checks how many failed machines a pool may preserve: one machine is left for system
// components.
func (r *report) preserved(field, worker tree) {
	maximum, allow := worker.at("maximum").count(), worker.at("systemComponents", "allow")
	most := maximum
	if maximum > 0 && (!allow.set() || allow.is()) {
		most--
	}
	switch {
	case !field.set():
	case field.count() < 0:
		r.notNegative(field)
	case field.count() > most:
		r.add(field, TypeInvalid, "%d is too large: with a maximum of %d machines %d failed ones can be kept, as one must be left for the components of the system where they are allowed", field.count(), maximum, most)
	}
}

// shootSystemPools checks that system components find a node in every zone. Pools with the same
// zones count together.
func shootSystemPools(r *report, s shoot) {
	if len(s.workers) == 0 {
		return
	}
	enough, short, found := map[string]bool{}, map[string]int{}, false
	for i, worker := range s.workers {
		allow := worker.at("systemComponents", "allow")
		if allow.set() && !allow.is() || worker.at("maximum").count() == 0 {
			continue
		}
		found = true
		zones := worker.at("zones").texts()
		slices.Sort(zones)
		key := strings.Join(slices.Compact(slices.Clone(zones)), "\x00")
		if worker.at("maximum").count() >= len(zones) {
			enough[key] = true
		} else {
			short[key] = i
		}
	}
	for key, i := range short {
		if !enough[key] {
			field := s.workers[i].at("maximum")
			r.add(field, TypeForbidden, "%d is below the number of zones, %d: the components of the system need a node in every zone", field.count(), len(s.workers[i].at("zones").items()))
		}
	}
	if !found {
		r.add(s.spec.at("provider", "workers"), TypeForbidden, "at least one pool with a maximum above 0 must allow components of the system (systemComponents.allow)")
	}
}
