// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSuspensionAt(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	until := func(at time.Time) *Suspension { return &Suspension{Reason: "why", Until: &metav1.Time{Time: at}} }
	for name, test := range map[string]struct {
		suspend   bool
		why, want *Suspension
	}{
		"not":            {},
		"a reason alone": {why: until(noon.Add(time.Hour))},
		"no reason":      {suspend: true, want: &Suspension{}},
		"for good":       {suspend: true, why: &Suspension{Reason: "why"}, want: &Suspension{Reason: "why"}},
		"still":          {suspend: true, why: until(noon.Add(1)), want: until(noon.Add(1))},
		"run out":        {suspend: true, why: until(noon)},
	} {
		t.Run(name, func(t *testing.T) {
			spec := LandscapeSpec{}
			spec.Suspend, spec.Suspension = test.suspend, test.why
			assert.Equal(t, test.want, spec.SuspensionAt(noon))
		})
	}
}
