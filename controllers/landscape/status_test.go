// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func noonMinus(d time.Duration) *time.Time {
	at := noon.Add(-d)
	return &at
}

func succeededOperation(d time.Duration) *gardencorev1beta1.LastOperation {
	return &gardencorev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", Progress: 100, LastUpdateTime: metav1.NewTime(noon.Add(-d))}
}

// TestObjectStatusAsJSON checks that embedded groups are inlined, in a stable order.
func TestObjectStatusAsJSON(t *testing.T) {
	got, err := json.Marshal(Status{Landscape: "local", At: noon, RuntimeFlags: " --context x", Owners: []OwnerStatus{
		{Kind: "Seed", Name: "one", Cluster: "one", Reconciler: "laptop", Missing: OwnerMissing{Reconciler: true, State: true}},
	}, Object: &ObjectStatus{
		Namespace: "garden", Name: "local", Ready: true, Reason: "Applied", Message: "it <is>",
		Suspension: &landscapev1alpha1.Suspension{Reason: "x", By: "alice"}, Pin: &landscapev1alpha1.Pin{Revision: "r", By: "bob", Reason: "y"}, Revision: "main@sha1:0a",
		FailedSync:    &landscapev1alpha1.SyncRecord{Revision: "main@sha1:0b", Result: landscapev1alpha1.SyncFailed, StartTime: metav1.NewTime(noon), Message: "no quota"},
		Held:          HeldCounts{Count: 50, IsMinimum: true, ByCluster: map[string]int{"one": 2, "runtime": 48}, reasons: map[string]string{"a": "b"}},
		PendingCauses: PendingCauses{Dependencies: "a", Gardenlets: "b", Operator: &StaleRole{Lease: "garden/x", Holder: "pod"}, Operations: "c"},
	}})
	require.NoError(t, err)
	assert.Equal(t, `{"landscape":"local","at":"2026-01-01T12:00:00Z","live":false,"ready":false,"owners":[`+
		`{"kind":"Seed","name":"one","cluster":"one","ready":false,"keeper":"laptop"}],`+
		`"object":{"namespace":"garden","name":"local","ready":true,"reason":"Applied","message":"it \u003cis\u003e",`+
		`"suspension":{"reason":"x","by":"alice"},"pin":{"revision":"r","reason":"y","by":"bob"},"revision":"main@sha1:0a",`+
		`"failedSync":{"revision":"main@sha1:0b","trigger":"","startTime":"2026-01-01T12:00:00Z","result":"Failed","message":"no quota"},`+
		`"held":50,"heldInPart":true,"heldOn":{"one":2,"runtime":48},`+
		`"dependenciesMissing":"a","gardenlets":"b","operatorSilent":{"lease":"garden/x","holder":"pod"},"operationsWaiting":"c"}}`, string(got))
	got, err = json.Marshal(&ObjectStatus{Namespace: "garden", Name: "local"})
	require.NoError(t, err)
	assert.Equal(t, `{"namespace":"garden","name":"local","ready":false}`, string(got))
}

func TestIsSameStateIgnoresTimes(t *testing.T) {
	example := func() Status {
		return Status{Landscape: "local", At: noon, Owners: []OwnerStatus{
			{Kind: "Garden", Name: "local", HealthCheckedAt: noonMinus(12 * time.Second)}, {Kind: "Seed", Name: "one", Shoots: []OwnerStatus{{Kind: "Shoot", Name: "b"}}},
		}}
	}
	s, later := example(), example()
	later.At, later.Owners[0].HealthCheckedAt = noon.Add(time.Hour), &noon
	assert.True(t, s.IsSameState(later))
	later.Owners[1].Shoots[0].Ready = true
	assert.False(t, s.IsSameState(later))
	assert.NotNil(t, s.Owners[0].HealthCheckedAt, "comparing changes nothing")
}

func TestNewestTime(t *testing.T) {
	condition := func(d time.Duration) gardencorev1beta1.Condition {
		return gardencorev1beta1.Condition{LastUpdateTime: metav1.NewTime(noon.Add(-d))}
	}
	assert.Nil(t, newestTime(nil, nil))
	assert.Nil(t, newestTime(&gardencorev1beta1.LastOperation{}, []gardencorev1beta1.Condition{{}}))
	assert.Equal(t, noonMinus(2*time.Second), newestTime(succeededOperation(3*time.Second), []gardencorev1beta1.Condition{condition(time.Minute), condition(2 * time.Second)}))
	assert.Equal(t, noonMinus(time.Second), newestTime(succeededOperation(time.Second), []gardencorev1beta1.Condition{condition(time.Minute)}))
}

// TestReadRoleHolder checks that the lease gives the reconciling process, while it renews, and the
// time of the last complete health check.
func TestReadRoleHolder(t *testing.T) {
	l := newLeaseTest(t)
	c := newBareConverger(clocktesting.NewFakeClock(noon), nil)
	read := func() *roleHolder {
		t.Helper()
		k, err := c.readRoleHolder(testContext(t), testCluster(t), l.name)
		require.NoError(t, err)
		return k
	}
	_, err := c.readRoleHolder(testContext(t), testCluster(t), l.name)
	require.Error(t, err, "there is no lease yet")
	l.writeAs("laptop", noon.Add(-leaseRenewInterval))
	assert.Equal(t, &roleHolder{holder: "laptop"}, read())
	l.writeAs("laptop", noon.Add(-time.Minute))
	assert.Equal(t, &roleHolder{}, read(), "it has crashed")
	l.writeAs("", noon)
	assert.Equal(t, &roleHolder{}, read(), "it was given back")

	own := newLeaseTest(t)
	l.name = own.name
	own.clock = clocktesting.NewFakeClock(noon)
	got, err := own.acquire(testCluster(t), "laptop")
	require.NoError(t, err)
	got.recordHealthCheck(noon.Add(-3 * time.Second))
	got.release()
	k := read()
	assert.True(t, k.healthCheckedAt.Equal(noon.Add(-3*time.Second)), "the last judgement is known after the holder has gone: %s", k.healthCheckedAt)

	s := OwnerStatus{HealthCheckedAt: noonMinus(time.Hour)}
	k.fillStatus(&s, "me")
	assert.True(t, s.Missing.Reconciler)
	assert.True(t, s.HealthCheckedAt.Equal(k.healthCheckedAt))
	s = OwnerStatus{}
	(&roleHolder{holder: "me", healthCheckedAt: noon}).fillStatus(&s, "me")
	assert.Equal(t, OwnerStatus{}, s, "an owner without status was never judged; we are nobody else")
}

func TestUninventoriedKindsNameEachLeaseOnce(t *testing.T) {
	assert.Contains(t, DescribeUninventoriedKinds(), fmt.Sprintf("\n  Leases garden/%s (runtime cluster) and garden/%s (seeds)\n", operatorLease, gardenletLease))
}
