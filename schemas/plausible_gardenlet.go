// SPDX-License-Identifier: Apache-2.0

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

// minCompactionEvents is less than the number of etcd changes of a Shoot in a minute.
const minCompactionEvents = 1000

// gardenletDurationFields lists times of a gardenlet that are implausible below one second, or five
// for syncPeriod.
var gardenletDurationFields = []string{"reconcileTimeout", "retryDuration", "syncPeriod", "activeDeadlineDuration", "progressDeadline"}

// checkGardenletPlausibility reports thresholds for unknown conditions, and times in the wrong
// unit.
func checkGardenletPlausibility(config fieldValue) []finding {
	r := &findingCollector{}
	controllers := config.lookup("controllers")
	for _, care := range []string{"shootCare", "seedCare"} {
		seen := map[string]fieldValue{}
		for _, threshold := range controllers.lookup(care, "conditionThresholds").items() {
			if first, twice := seen[threshold.lookup("type").text()]; twice {
				r.add(threshold.lookup("type"), TypeDuplicate, "already has a threshold (%s); remove one of them", first.path)
			}
			seen[threshold.lookup("type").text()] = threshold
			if name := threshold.lookup("type"); name.text() != "" && !slices.Contains(conditionTypes, name.text()) {
				if hint := suggest.ClosestWithin(name.text(), conditionTypes, 3); hint != "" {
					r.add(name, TypeNotSupported, "the gardenlet checks no such condition; did you mean %q?", hint)
				}
			}
		}
	}
	var walk func(fieldValue)
	walk = func(t fieldValue) {
		for _, name := range t.keys() {
			field := t.lookup(name)
			least := time.Second
			if name == "syncPeriod" {
				least = 5 * time.Second
			}
			if duration, ok := field.duration(); ok && slices.Contains(gardenletDurationFields, name) && duration > 0 && duration < least {
				r.add(field, TypeInvalid, "%s is probably a mistake: it is less than %s", field.text(), least)
			}
			if name == "eventsThreshold" && field.isSet() && field.integer() < minCompactionEvents {
				r.add(field, TypeInvalid, "%v is probably a mistake: etcd is compacted every %v changes; the default is 1000000", field.value, field.value)
			}
			walk(field)
		}
	}
	walk(config)
	if capacity := config.lookup("resources", "capacity", "shoots"); capacity.isSet() {
		if most, ok := capacity.quantity(); ok && most.IsZero() {
			r.add(capacity, TypeInvalid, "the seed accepts no Shoot; leave it out for any number, or set spec.settings.scheduling.visible to false")
		}
	}
	secret, bootstrap := config.lookup("gardenClientConnection", "kubeconfigSecret"), config.lookup("gardenClientConnection", "bootstrapKubeconfig")
	if secret.lookup("name").text() != "" && isEqual(secret.value, bootstrap.value) {
		r.add(bootstrap, TypeDuplicate, "is also the Secret of kubeconfigSecret; the gardenlet deletes it after it has written its own kubeconfig there")
	}
	if address := config.lookup("gardenClientConnection", "gardenClusterAddress"); strings.HasPrefix(address.text(), "http://") {
		r.add(address, TypeInvalid, "%q has no TLS, so credentials would be readable on the network; write https", address.text())
	}
	if life := config.lookup("gardenClientConnection", "kubeconfigValidity", "validity"); life.isSet() {
		if duration, ok := life.duration(); ok && duration < time.Hour {
			r.add(life, TypeInvalid, "%s is probably a mistake: a gardenlet that is offline for that long loses its access; the default comes from the cluster", life.text())
		}
	}
	return r.findings
}
