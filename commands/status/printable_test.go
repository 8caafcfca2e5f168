// SPDX-License-Identifier: Apache-2.0

package status

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// injectControlCharacters appends control characters and a line of a fake status to every text of a
// value.
func injectControlCharacters(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			injectControlCharacters(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				injectControlCharacters(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			injectControlCharacters(v.Index(i))
		}
	case reflect.String:
		lookedUp := v.Type() == reflect.TypeFor[owner.BundleHealth]() || slices.Contains([]string{"", "-", "Seed", "one"}, v.String())
		if !lookedUp {
			v.SetString(v.String() + "\x1b[2J\u009b\u202e\nLandscape local: Ready")
		}
	}
}

// TestStatusIsPrintable: text of a cluster can neither control the terminal nor add lines.
func TestStatusIsPrintable(t *testing.T) {
	statuses := func() []landscape.Status {
		s := exampleStatus()
		s.Invalid, s.ObjectUnknown = "broken", "forbidden"
		s.Owners[0].Reconciler = "pergola operator"
		s.HandedOver = []change.HandedOver{{Path: "spec.replicas", Manager: "hpa"}}
		s.Object = &landscape.ObjectStatus{Namespace: "garden", Name: "local", Revision: "main@sha1:0a1b", Reason: "Other", Message: "why", Held: landscape.HeldCounts{Count: 2, ByCluster: map[string]int{"one": 2}},
			Suspension: &landscapev1alpha1.Suspension{By: "alice", Reason: "etcd"}, Pin: &landscapev1alpha1.Pin{Revision: "x", By: "bob", Reason: "y"},
			FailedSync: &landscapev1alpha1.SyncRecord{Revision: "main@sha1:0a1c", Message: "no", StartTime: metav1.NewTime(noon.Add(-time.Hour))}, PendingCauses: landscape.PendingCauses{Dependencies: "a", Gardenlets: "b", Operations: "c"}}
		waits, silent := s, s
		waits.Object = &landscape.ObjectStatus{Namespace: "garden", Name: "local", Reason: "Other", Message: "why"}
		silent.Object = &landscape.ObjectStatus{Namespace: "garden", Name: "local", PendingCauses: landscape.PendingCauses{Operator: &landscape.StaleRole{Lease: "garden/x", Holder: "pod", LastRenewal: timeBefore(time.Hour)}}}
		return []landscape.Status{s, waits, silent}
	}
	for i, s := range statuses() {
		spoiled := statuses()[i]
		injectControlCharacters(reflect.ValueOf(&spoiled).Elem())
		require.NotEqual(t, s, spoiled)
		got := printedStatus(spoiled)
		assert.NotRegexp(t, "[\x1b\u009b\u202e]", got)
		assert.Len(t, strings.Split(got, "\n"), len(strings.Split(printedStatus(s), "\n")), "no line is of others:\n%s", got)
	}
}
