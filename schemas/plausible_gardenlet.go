package schemas

import (
	"slices"
	"strings"
	"time"
)

// This file has the warnings about gardenlets; gorules_plausible.go lists them.

// conditionTypes are those that a gardenlet takes thresholds for.
var conditionTypes = []string{
	"APIServerAvailable", "BackupBucketsReady", "ControlPlaneHealthy", "EmergencyStopShootReconciliations", "EveryNodeReady", "ExtensionsReady", "GardenletReady",
	"ObservabilityComponentsHealthy", "SeedSystemComponentsHealthy", "SystemComponentsHealthy",
}

// leastEvents is less than an etcd of a Shoot has in a minute.
const leastEvents = 1000

// shortOfGardenlet are times of a gardenlet that are hardly meant when they are shorter than a second.
var shortOfGardenlet = []string{"reconcileTimeout", "retryDuration", "syncPeriod", "activeDeadlineDuration", "progressDeadline"}

// gardenletHabits finds thresholds for conditions that there are not, and times in the wrong unit.
func gardenletHabits(config tree) []finding {
	r := &report{}
	controllers := config.at("controllers")
	for _, care := range []string{"shootCare", "seedCare"} {
		for _, threshold := range controllers.at(care, "conditionThresholds").items() {
			if name := threshold.at("type"); name.text() != "" && !slices.Contains(conditionTypes, name.text()) {
				if hint := SuggestWithin(name.text(), conditionTypes, 3); hint != "" {
					r.add(name, TypeNotSupported, "no such condition is checked; did you mean %q?", hint)
				}
			}
		}
	}
	var walk func(tree)
	walk = func(t tree) {
		for _, name := range t.keys() {
			field := t.at(name)
			least := time.Second
			if name == "syncPeriod" {
				least = 5 * time.Second
			}
			if duration, ok := field.duration(); ok && slices.Contains(shortOfGardenlet, name) && duration > 0 && duration < least {
				r.add(field, TypeInvalid, "%s is hardly meant: it is less than %s", field.text(), least)
			}
			if name == "eventsThreshold" && field.set() && field.count() < leastEvents {
				r.add(field, TypeInvalid, "%v is hardly meant: etcd is compacted each %v changes; the default is 1000000", field.value, field.value)
			}
			walk(field)
		}
	}
	walk(config)
	if address := config.at("gardenClientConnection", "gardenClusterAddress"); strings.HasPrefix(address.text(), "http://") {
		r.add(address, TypeInvalid, "%q has no TLS: credentials would be read on the way; write https", address.text())
	}
	if life := config.at("gardenClientConnection", "kubeconfigValidity", "validity"); life.set() {
		if duration, ok := life.duration(); ok && duration < time.Hour {
			r.add(life, TypeInvalid, "%s is hardly meant: a gardenlet that is away for so long does not get in again; the default is that of the cluster", life.text())
		}
	}
	return r.findings
}
