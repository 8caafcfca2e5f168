// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition types of a ManagedResource.
const (
	resourcesApplied     = "ResourcesApplied"
	resourcesHealthy     = "ResourcesHealthy"
	resourcesProgressing = "ResourcesProgressing"
)

// CheckManagedResource fails unless the resources are applied for the latest generation, and
// healthy (pkg/utils/kubernetes/health/managedresource.go).
func CheckManagedResource(obj *unstructured.Unstructured) error {
	return toError(checkManagedResource(obj))
}

func checkManagedResource(obj *unstructured.Unstructured) *Failure {
	return firstFailure(checkManagedResourceApplied(obj), checkResourceCondition(obj, resourcesHealthy, "True"))
}

// CheckManagedResourceApplied fails unless the resources are applied for the latest generation.
func CheckManagedResourceApplied(obj *unstructured.Unstructured) error {
	return toError(checkManagedResourceApplied(obj))
}

func checkManagedResourceApplied(obj *unstructured.Unstructured) *Failure {
	return firstFailure(checkManagedResourceObserved(obj), checkResourceCondition(obj, resourcesApplied, "True"))
}

// CheckManagedResourceHealthy fails unless the resources are healthy, for any generation.
func CheckManagedResourceHealthy(obj *unstructured.Unstructured) error {
	return toError(checkResourceCondition(obj, resourcesHealthy, "True"))
}

// CheckManagedResourceProgressing fails unless the resources are rolled out, for any generation.
func CheckManagedResourceProgressing(obj *unstructured.Unstructured) error {
	return toError(checkResourceCondition(obj, resourcesProgressing, "False"))
}

func managedResourceProgressing(obj *unstructured.Unstructured) (bool, string) {
	if c, ok := conditionOf(obj, resourcesProgressing); ok && c.status == "True" {
		return true, c.cause()
	}
	return false, ""
}

func checkManagedResourceObserved(obj *unstructured.Unstructured) *Failure {
	if seen := intOrZero(obj, "status", "observedGeneration"); seen != generation(obj) {
		return waitf("observed generation of ManagedResource %s outdated (%d/%d)", nameOf(obj), seen, generation(obj))
	}
	return nil
}

func checkResourceCondition(obj *unstructured.Unstructured, kind, want string) *Failure {
	c, ok := conditionOf(obj, kind)
	if !ok {
		return waitf("condition %s of ManagedResource %s is not reported yet", kind, nameOf(obj))
	}
	if c.status == want {
		return nil
	}
	f := failf("condition %s of ManagedResource %s is %s: %s", kind, nameOf(obj), c.status, c.cause())
	f.Waiting, f.Codes = c.status != "False", c.codes
	return f
}

// CareManagedResource is the rule of the care controllers of Garden, Seed and Shoot for a
// ManagedResource. Its Reason is that of the condition; nil means healthy. A rollout, or an unknown
// rollout state, fails the check at once. With a threshold (`managedResourceProgressingThreshold`
// of a gardenlet) it fails that long after the condition's lastTransitionTime, with reason
// ProgressingRolloutStuck. For an outdated status, upstream reports the failure only if objects
// could not be applied; this rule reports every failure of ResourcesApplied. Source:
// pkg/utils/kubernetes/health/checker, reference gardenlet section 7.
func CareManagedResource(obj *unstructured.Unstructured, progressingThreshold *time.Duration, now time.Time) *Failure {
	if f := checkManagedResourceObserved(obj); f != nil {
		f.Reason = "OutdatedStatus"
		if c, ok := conditionOf(obj, resourcesApplied); ok && c.status == "False" && c.reason != "" {
			f.Reason, f.Message, f.Codes = c.reason, fmt.Sprintf("%s; %s", f.Message, c.message), c.codes
		}
		return f
	}
	var missing []string
	for _, kind := range []string{resourcesApplied, resourcesHealthy, resourcesProgressing} {
		c, ok := conditionOf(obj, kind)
		if !ok {
			missing = append(missing, kind)
			continue
		}
		if f := checkCareCondition(obj, c, progressingThreshold, now); f != nil {
			return f
		}
	}
	if len(missing) > 0 {
		f := waitf("ManagedResource %s does not report %s", nameOf(obj), strings.Join(missing, ", "))
		f.Reason = "MissingManagedResourceCondition"
		return f
	}
	return nil
}

func checkCareCondition(obj *unstructured.Unstructured, c statusCondition, threshold *time.Duration, now time.Time) *Failure {
	bad := c.status == "False" || c.status == "Unknown"
	if c.kind == resourcesProgressing {
		bad = c.status == "True" || c.status == "Unknown"
		if bad && threshold != nil {
			return checkRolloutTime(obj, c, *threshold, now)
		}
	}
	if !bad {
		return nil
	}
	f := failf("ManagedResource %s: %s", nameOf(obj), c.message)
	f.Reason, f.Codes, f.Waiting = c.reason, c.codes, c.status == "Unknown"
	if f.Reason == "" {
		f.Reason = c.kind
	}
	return f
}

// checkRolloutTime fails when the rollout lasts as long as the threshold.
func checkRolloutTime(obj *unstructured.Unstructured, c statusCondition, threshold time.Duration, now time.Time) *Failure {
	if now.Sub(c.transition) < threshold {
		return nil
	}
	f := failf("ManagedResource %s is progressing for more than %s: %s", nameOf(obj), threshold, c.cause())
	f.Reason, f.Codes = "ProgressingRolloutStuck", c.codes
	return f
}

func nameOf(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return obj.GetName()
	}
	return obj.GetNamespace() + "/" + obj.GetName()
}
