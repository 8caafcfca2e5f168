// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/prometheus"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/landscapes"
)

// defaultThreshold applies to every condition that a landscape does not name (upstream's charts:
// 1m).
const defaultThreshold = time.Minute

// ConditionThresholds returns the condition thresholds of landscape.yaml.
func ConditionThresholds(l *landscapes.Landscape) condition.Thresholds {
	out := condition.Thresholds{}
	for _, name := range []gardencorev1beta1.ConditionType{
		"VirtualGardenAPIServerAvailable", "RuntimeComponentsHealthy", "VirtualComponentsHealthy", "ObservabilityComponentsHealthy",
		"SeedSystemComponentsHealthy", "ControlPlaneHealthy",
	} {
		out[name] = defaultThreshold
	}
	for _, t := range l.Config.Spec.ConditionThresholds {
		out[t.Type] = t.Duration.Duration
	}
	return out
}

// progressingThreshold limits how long a ManagedResource may be progressing; it is nil if
// landscape.yaml does not set it.
func progressingThreshold(l *landscapes.Landscape) *time.Duration {
	if t := l.Config.Spec.ManagedResourceProgressingThreshold; t != nil {
		return &t.Duration
	}
	return nil
}

// prometheusAccess returns how to reach the Prometheus instances of the garden, or nil unless the
// feature gate for their health checks is on.
func prometheusAccess(l *landscapes.Landscape, outside bool) func(*rest.Config) prometheus.ServerAccess {
	switch {
	case !l.Config.Spec.FeatureGates.Values()[landscapev1alpha1.FeaturePrometheusHealthChecks]:
		return nil
	case outside:
		return prometheus.APIServerAccess
	}
	return prometheus.InClusterAccess
}

// DeletionGate returns the deletion gate of a landscape with the approved ids.
func DeletionGate(l *landscapes.Landscape, approved []string) (permit.Gate, error) {
	gate := permit.DefaultGate()
	gate.Approved = map[string]bool{}
	for _, id := range approved {
		gate.Approved[id] = true
	}
	spec := l.Config.Spec.DeletionGate
	if spec == nil {
		return gate, nil
	}
	if spec.MaxDeletions != nil {
		gate.MaxDeletions = permit.Limit(int(*spec.MaxDeletions))
	}
	if spec.MaxShare != nil {
		share, err := permit.ParseShare(*spec.MaxShare)
		if err != nil {
			return gate, fmt.Errorf("landscape.yaml: spec.deletionGate.maxShare: %w", err)
		}
		gate.MaxShare = permit.Limit(share)
	}
	if spec.ProtectedKinds != nil {
		gate.Protected = spec.ProtectedKinds
	}
	return gate, nil
}
