package v1alpha1

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSuspendedAt(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	until := func(at time.Time) *Suspension { return &Suspension{Reason: "why", Until: &metav1.Time{Time: at}} }
	for name, test := range map[string]struct {
		spec LandscapeSpec
		want *Suspension
	}{
		"not":            {LandscapeSpec{}, nil},
		"a reason alone": {LandscapeSpec{Suspension: until(noon.Add(time.Hour))}, nil},
		"no reason":      {LandscapeSpec{Suspend: true}, &Suspension{}},
		"for good":       {LandscapeSpec{Suspend: true, Suspension: &Suspension{Reason: "why"}}, &Suspension{Reason: "why"}},
		"still":          {LandscapeSpec{Suspend: true, Suspension: until(noon.Add(1))}, until(noon.Add(1))},
		"run out":        {LandscapeSpec{Suspend: true, Suspension: until(noon)}, nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, test.spec.SuspendedAt(noon)) })
	}
}
