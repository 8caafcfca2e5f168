// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/health/condition"
)

// StaleRole describes a role without a living process.
type StaleRole struct {
	// Lease is the Lease of the role, NAMESPACE/NAME.
	Lease string `json:"lease"`
	// Holder is the last holder; it is empty if it has released the lease, or if there was none.
	Holder string `json:"holder,omitempty"`
	// LastRenewal is the last renewal; it is nil if there was none.
	LastRenewal *time.Time `json:"since,omitempty"`
}

// staleAfter is the age of a renewal after which a role counts as silent. Clocks differ a little,
// and a restarted process acquires its lease within this time.
const staleAfter = 2 * leaseDuration

// Heartbeats of a gardenlet: a Lease for each Seed in the virtual garden. The periods are
// upstream's (gardener-controller-manager: monitorPeriod, shootMonitorPeriod), which writes the
// status of Seeds and Shoots; here it is only displayed.
const (
	monitorPeriod      = 40 * time.Second
	shootMonitorPeriod = 5 * monitorPeriod
)

// staleRoleOf checks a lease, which is nil if missing, and returns nil while it is renewed. A
// process that ends normally releases it, and is silent at once.
func staleRoleOf(lease *coordinationv1.Lease, name string, after time.Duration, now time.Time) *StaleRole {
	out := &StaleRole{Lease: name}
	if lease == nil || lease.Spec.RenewTime == nil {
		return out
	}
	out.Holder, out.LastRenewal = ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.To(lease.Spec.RenewTime.UTC())
	if out.Holder != "" && now.Sub(*out.LastRenewal) < after {
		return nil
	}
	return out
}

// Text describes the silence, to follow a text such as "no operator runs: ".
func (s *StaleRole) Text(now time.Time) string {
	switch {
	case s.LastRenewal == nil:
		return fmt.Sprintf("its lease %s never had a holder", s.Lease)
	case s.Holder == "":
		return fmt.Sprintf("its lease %s was released %s ago", s.Lease, duration.HumanDuration(max(now.Sub(*s.LastRenewal), 0)))
	}
	return fmt.Sprintf("%s last renewed its lease %s %s ago", HolderText(s.Holder), s.Lease, duration.HumanDuration(now.Sub(*s.LastRenewal)))
}

// StaleOperator returns nil if an operator runs in a cluster.
func StaleOperator(ctx context.Context, leases LeaseReader, now time.Time) (*StaleRole, error) {
	return readStaleRole(ctx, leases, leasesNamespace, operatorLease, staleAfter, now)
}

// StaleGardenlet is StaleOperator for the gardenlet of a seed, in that seed.
func StaleGardenlet(ctx context.Context, leases LeaseReader, now time.Time) (*StaleRole, error) {
	return readStaleRole(ctx, leases, leasesNamespace, gardenletLease, staleAfter, now)
}

// StaleSeedGardenlet is StaleGardenlet from the virtual garden, where the gardenlet of each Seed
// with the condition GardenletReady renews a Lease.
func StaleSeedGardenlet(ctx context.Context, leases LeaseReader, seed string, now time.Time) (*StaleRole, error) {
	return readStaleRole(ctx, leases, gardencorev1beta1.GardenerSystemSeedLeaseNamespace, seed, monitorPeriod, now)
}

// LeaseReader reads a Lease.
type LeaseReader func(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error)

// NewLeaseReader returns a LeaseReader of a client.
func NewLeaseReader(client kubernetes.Interface) LeaseReader {
	return func(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
		return client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

func readStaleRole(ctx context.Context, leases LeaseReader, namespace, name string, after time.Duration, now time.Time) (*StaleRole, error) {
	lease, err := leases(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		lease, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Lease %s/%s: %w", namespace, name, err)
	}
	return staleRoleOf(lease, namespace+"/"+name, after, now), nil
}

// StartOperatorHint returns the hint to inspect and start an operator, with the names of its chart.
// kubectl is the command with flags for the runtime cluster.
func StartOperatorHint(kubectl string) string {
	return fmt.Sprintf("see %[1]s -n garden get pods -l app.kubernetes.io/component=operator; if it was scaled down, %[1]s -n garden scale deployment pergola-operator --replicas=1", kubectl)
}

// readStaleOperator returns nil if the operator of the landscape runs, or if that is unknown.
func (c *Converger) readStaleOperator(ctx context.Context, now time.Time) *StaleRole {
	if c.connections.clusters[Runtime] == nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(c.connections.clusters[Runtime].RESTConfig())
	if err != nil {
		return nil
	}
	out, err := StaleOperator(ctx, NewLeaseReader(client), now)
	if err != nil {
		return nil // reading the Landscape reports the cause
	}
	return out
}

// staleGardenlets returns the silent gardenlets of the seeds, by the name of the Seed. A Seed that
// never had a gardenlet has no condition GardenletReady.
func (c *Converger) staleGardenlets(ctx context.Context, states []OwnerStatus, now time.Time) map[string]*StaleRole {
	out := map[string]*StaleRole{}
	if c.connections.clusters[Virtual] == nil {
		return out
	}
	client, err := kubernetes.NewForConfig(c.connections.clusters[Virtual].RESTConfig())
	if err != nil {
		return out
	}
	for _, s := range states {
		if s.Kind != "Seed" || condition.Get(s.Conditions, gardencorev1beta1.GardenletReady) == nil {
			continue
		}
		silence, err := StaleSeedGardenlet(ctx, NewLeaseReader(client), s.Name, now)
		if err == nil && silence != nil {
			out[s.Name] = silence
		}
	}
	return out
}

// gardenletHint explains why the condition is not True although the seed is reconciled.
const gardenletHint = "A pergola apply reconciles the seed while it runs, but posts no such status. Start the gardenlet of the seed, and the operator."

// staleConditions returns the conditions of an owner whose gardenlet is silent: the last written
// ones are outdated. Conditions of a Shoot stay longer.
func (s *StaleRole) staleConditions(kind string, conditions []gardencorev1beta1.Condition, live bool, now time.Time) []gardencorev1beta1.Condition {
	out := make([]gardencorev1beta1.Condition, 0, len(conditions))
	for _, c := range conditions {
		switch {
		case kind == "Seed" && c.Type == gardencorev1beta1.GardenletReady:
			c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionUnknown, "StatusUnknown", "Gardenlet stopped posting status updates: "+s.Text(now)+". "+gardenletHint
		case kind == "Seed" && c.Type == seedpublication.ConditionSettingsUpToDate:
			// later publications are not in use
			c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionUnknown, "StatusUnknown", "Gardenlet stopped posting status updates; before: "+c.Message
		case kind == "Shoot" && !live && (s.LastRenewal == nil || now.Sub(*s.LastRenewal) >= shootMonitorPeriod):
			c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionUnknown, "StatusUnknown", "Gardenlet stopped sending heartbeats; before: "+c.Message
		}
		out = append(out, c)
	}
	return out
}

// markStaleOwners updates the conditions of Seeds and Shoots whose gardenlet is silent.
func (c *Converger) markStaleOwners(ctx context.Context, states []OwnerStatus, live bool, now time.Time) {
	silent := c.staleGardenlets(ctx, states, now)
	for i, o := range c.members.all {
		seed := o.Local.Name()
		// This process may act as the gardenlet itself.
		if s := silent[seed]; s != nil && o.Input.Owner.Kind != owner.Garden && !c.hasLease(seed, gardenletLease) {
			states[i].Conditions = s.staleConditions(states[i].Kind, states[i].Conditions, live, now)
			states[i].Ready = states[i].Ready && condition.AreAllTrue(states[i].Conditions)
		}
	}
}
