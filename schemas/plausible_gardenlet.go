package schemas

import (
	"slices"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// This file has the warnings about gardenlets; gorules_plausible.go lists them.

// conditionTypes lists the conditions for which a gardenlet accepts thresholds.
var conditionTypes = []string{
	"APIServerAvailable", "BackupBucketsReady", "ControlPlaneHealthy", "EmergencyStopShootReconciliations", "EveryNodeReady", "ExtensionsReady", "GardenletReady",
	"ObservabilityComponentsHealthy", "SeedSystemComponentsHealthy", "SystemComponentsHealthy",
}

// leastEvents is less than the number of etcd changes of a Shoot in a minute.
const leastEvents = 1000

// shortOfGardenlet lists times of a gardenlet that are implausible below one second, or five for
// syncPeriod.
var shortOfGardenlet = []string{"reconcileTimeout", "retryDuration", "syncPeriod", "activeDeadlineDuration", "progressDeadline"}

// gardenletHabits reports thresholds for unknown conditions, and times in the wrong unit.
func gardenletHabits(config tree) []finding {
	r := &report{}
	controllers := config.at("controllers")
	for _, care := range []string{"shootCare", "seedCare"} {
		seen := map[string]tree{}
		for _, threshold := range controllers.at(care, "conditionThresholds").items() {
			if first, twice := seen[threshold.at("type").text()]; twice {
				r.add(threshold.at("type"), TypeDuplicate, "has a threshold already (%s); remove one of them", first.path)
			}
			seen[threshold.at("type").text()] = threshold
			if name := threshold.at("type"); name.text() != "" && !slices.Contains(conditionTypes, name.text()) {
				if hint := suggest.Within(name.text(), conditionTypes, 3); hint != "" {
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
	if capacity := config.at("resources", "capacity", "shoots"); capacity.set() {
		if most, ok := capacity.quantity(); ok && most.IsZero() {
			r.add(capacity, TypeInvalid, "no Shoot gets a place on the seed then; leave it out for any number, or set spec.settings.scheduling.visible to false")
		}
	}
	secret, bootstrap := config.at("gardenClientConnection", "kubeconfigSecret"), config.at("gardenClientConnection", "bootstrapKubeconfig")
	if secret.at("name").text() != "" && equal(secret.value, bootstrap.value) {
		r.add(bootstrap, TypeDuplicate, "is the Secret of kubeconfigSecret, too: the gardenlet deletes it once it has written its own kubeconfig there")
	}
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
