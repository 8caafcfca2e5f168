// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Gardener identifies the instance that reconciles an object, as in status.gardener.
type Gardener struct{ ID, Name, Version string }

// seedConditions are True for a working seed (pkg/utils/kubernetes/health/seed.go).
func seedConditions() []string { return []string{"GardenletReady", "SeedSystemComponentsHealthy"} }

// CheckSeed fails unless the given instance has reconciled the latest generation and the required
// conditions are True.
func CheckSeed(obj *unstructured.Unstructured, identity *Gardener) error {
	return toError(firstFailure(checkSeedUpToDate(obj, identity), checkSeedConditions(obj)))
}

// CheckSeedIsUpToDate fails unless the given instance has reconciled the latest generation.
func CheckSeedIsUpToDate(obj *unstructured.Unstructured, identity *Gardener) error {
	return toError(checkSeedUpToDate(obj, identity))
}

// CheckSeedForMigration is CheckSeed, but compares only the version: the other seed's instance has
// another name.
func CheckSeedForMigration(obj *unstructured.Unstructured, identity *Gardener) error {
	seen := gardenerOf(obj)
	if seen == nil || identity == nil {
		return waitf("the Gardener version of the source or the destination seed is not known")
	}
	if seen.Version != identity.Version {
		return waitf("the seed was reconciled by Gardener %s, not by %s", seen.Version, identity.Version)
	}
	return toError(firstFailure(checkGenerationObserved(obj), checkSeedConditions(obj)))
}

// CheckRequiredSeedConditions fails if a required condition is missing. It returns the types of
// existing conditions that are not True.
func CheckRequiredSeedConditions(obj *unstructured.Unstructured) (notTrue []string, err error) {
	for _, kind := range seedConditions() {
		c, ok := conditionOf(obj, kind)
		if !ok {
			return nil, waitf("condition %q is missing", kind)
		}
		if c.status != "True" {
			notTrue = append(notTrue, kind)
		}
	}
	return notTrue, nil
}

func checkSeedVerdict(obj *unstructured.Unstructured, in inputs) *Failure {
	if in.gardener != nil {
		return firstFailure(checkSeedUpToDate(obj, in.gardener), checkSeedConditions(obj))
	}
	return firstFailure(checkGenerationObserved(obj), checkSeedConditions(obj))
}

func checkSeedUpToDate(obj *unstructured.Unstructured, identity *Gardener) *Failure {
	seen := gardenerOf(obj)
	if (seen == nil) != (identity == nil) || seen != nil && *seen != *identity {
		return waitf("the seed was last reconciled by Gardener %s, not by %s", seen.describe(), identity.describe())
	}
	return checkGenerationObserved(obj)
}

func checkSeedConditions(obj *unstructured.Unstructured) *Failure {
	for _, kind := range seedConditions() {
		if f := checkConditionTrue(obj, kind); f != nil {
			return f
		}
	}
	return nil
}

func gardenerOf(obj *unstructured.Unstructured) *Gardener {
	m, ok := fieldAt(obj.Object, "status", "gardener").(map[string]any)
	if !ok {
		return nil
	}
	return &Gardener{ID: textAt(m, "id"), Name: textAt(m, "name"), Version: textAt(m, "version")}
}

func (g *Gardener) describe() string {
	if g == nil {
		return "(none)"
	}
	return fmt.Sprintf("%q (id %q, version %q)", g.Name, g.ID, g.Version)
}
