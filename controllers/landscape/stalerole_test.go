// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/render"
)

func renewedLease(holder string, ago time.Duration) *coordinationv1.Lease {
	at := metav1.NewMicroTime(noon.Add(-ago))
	l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
	if holder != "" {
		l.Spec.HolderIdentity = &holder
	}
	return l
}

func TestStaleRole(t *testing.T) {
	for name, c := range map[string]struct {
		lease *coordinationv1.Lease
		want  string
	}{
		"never":                {nil, "its lease garden/role never had a holder"},
		"never renewed":        {&coordinationv1.Lease{}, "its lease garden/role never had a holder"},
		"renewed":              {renewedLease("a", 10*time.Second), ""},
		"of a clock ahead":     {renewedLease("a", -time.Minute), ""},
		"given back just now":  {renewedLease("", time.Second), "its lease garden/role was released 1s ago"},
		"by a clock ahead":     {renewedLease("", -time.Minute), "its lease garden/role was released 0s ago"},
		"may have crashed":     {renewedLease("a", 59*time.Second), ""},
		"given back long ago":  {renewedLease("", 3*time.Minute), "its lease garden/role was released 3m ago"},
		"whose holder crashed": {renewedLease("a", time.Minute), "a last renewed its lease garden/role 60s ago"},
	} {
		t.Run(name, func(t *testing.T) {
			got := staleRoleOf(c.lease, "garden/role", staleAfter, noon)
			if c.want == "" {
				assert.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, c.want, got.Text(noon))
		})
	}
}

func TestConditionsOfStaleGardenlet(t *testing.T) {
	conditions := []gardencorev1beta1.Condition{{Type: gardencorev1beta1.GardenletReady, Status: "True"}, {Type: "ControlPlaneHealthy", Status: "True", Message: "fine"},
		{Type: seedpublication.ConditionSettingsUpToDate, Status: "True", Message: "in use"}}
	short := staleRoleOf(renewedLease("g", time.Minute), "ns/one", monitorPeriod, noon)
	long := staleRoleOf(renewedLease("g", 200*time.Second), "ns/one", monitorPeriod, noon)
	statuses := func(kind string, s *StaleRole, live bool) (out []string) {
		for _, c := range s.staleConditions(kind, conditions, live, noon) {
			out = append(out, string(c.Status))
		}
		return out
	}
	assert.Equal(t, []string{"Unknown", "True", "Unknown"}, statuses("Seed", short, false))
	assert.Equal(t, []string{"Unknown", "True", "Unknown"}, statuses("Seed", long, true), "nobody judges that but the gardenlet")
	assert.Equal(t, []string{"True", "True", "True"}, statuses("Shoot", short, false), "five times as long")
	assert.Equal(t, []string{"Unknown", "Unknown", "Unknown"}, statuses("Shoot", long, false))
	assert.Equal(t, []string{"True", "True", "True"}, statuses("Shoot", long, true), "they were judged now")
	assert.Equal(t, "True", string(conditions[0].Status), "the former ones stay as they are")
	assert.Contains(t, long.staleConditions("Seed", conditions, false, noon)[0].Message, "g last renewed its lease ns/one 3m20s ago")
	assert.Contains(t, long.staleConditions("Seed", conditions, false, noon)[0].Message, "A pergola apply reconciles the seed while it runs, but posts no such status. Start the gardenlet")
}

// TestStatusMarksStaleGardenlet checks that the heartbeat of a seed is read from the virtual
// garden, and compared with the clock of the converger.
func TestStatusMarksStaleGardenlet(t *testing.T) {
	w := newFolderLandscape(t, "aging", nil)
	c := w.newConverger()
	const seed = "aging"
	c.connections.clusters[seed] = c.connections.clusters[Virtual]
	ref := ownerRef(render.Owner{Kind: owner.Seed, Name: seed})
	// The cluster has the name of the Seed.
	local, err := conventions.NewCluster(seed, rest.CopyConfig(server.config), apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(local.Close)
	c.members.all = []*convergedOwner{{Owner: owner.Owner{Ref: ref, ObjectCluster: c.connections.clusters[Virtual], Local: local, Input: render.Input{Owner: render.Owner{Kind: owner.Seed, Name: seed}}}}}
	leases := testClient(t).CoordinationV1().Leases(gardencorev1beta1.GardenerSystemSeedLeaseNamespace)
	makeNamespace(t, gardencorev1beta1.GardenerSystemSeedLeaseNamespace)
	at := metav1.NewMicroTime(w.clock.Now())
	_, err = leases.Create(testContext(t), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: seed}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("g"), RenewTime: &at}}, metav1.CreateOptions{})
	require.NoError(t, err)
	state := func() OwnerStatus {
		states := []OwnerStatus{{Kind: "Seed", Name: seed, Ready: true, Conditions: []gardencorev1beta1.Condition{{Type: gardencorev1beta1.GardenletReady, Status: "True"}}}}
		c.markStaleOwners(testContext(t), states, false, w.clock.Now())
		return states[0]
	}
	assert.True(t, state().Ready)
	w.clock.Step(monitorPeriod)
	assert.False(t, state().Ready)
	assert.Equal(t, gardencorev1beta1.ConditionUnknown, state().Conditions[0].Status)
}

func makeNamespace(t *testing.T, name string) {
	t.Helper()
	_, err := testClient(t).CoreV1().Namespaces().Create(testContext(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}
