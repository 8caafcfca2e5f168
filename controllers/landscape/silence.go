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

// Silence is a role that nobody plays any more.
type Silence struct {
	// Lease of the role, NAMESPACE/NAME.
	Lease string `json:"lease"`
	// Holder had it last; empty where it was given back, or where there never was one.
	Holder string `json:"holder,omitempty"`
	// Since is when it was renewed last; nil where nobody ever had it.
	Since *time.Time `json:"since,omitempty"`
}

// silentAfter is how old the renewal of a lease is when nobody can be expected to renew it any
// more: clocks differ a little, and a process that is started anew takes its lease within this
// time.
const silentAfter = 2 * leaseDuration

// Heartbeats of a gardenlet: a Lease for each Seed in the virtual garden. The times are those of
// upstream's gardener-controller-manager (monitorPeriod, shootMonitorPeriod), which writes into the
// status of Seeds and Shoots what is only shown here.
const (
	monitorPeriod      = 40 * time.Second
	shootMonitorPeriod = 5 * monitorPeriod
)

// silenceOf judges a lease, nil for none; the answer is nil while somebody renews it. Who ends in
// order gives it back, and is gone at once.
func silenceOf(lease *coordinationv1.Lease, name string, after time.Duration, now time.Time) *Silence {
	out := &Silence{Lease: name}
	if lease == nil || lease.Spec.RenewTime == nil {
		return out
	}
	out.Holder, out.Since = ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.To(lease.Spec.RenewTime.UTC())
	if out.Holder != "" && now.Sub(*out.Since) < after {
		return nil
	}
	return out
}

// Text says since when, after "no operator runs: " or the like.
func (s *Silence) Text(now time.Time) string {
	switch {
	case s.Since == nil:
		return fmt.Sprintf("nobody ever had its lease %s", s.Lease)
	case s.Holder == "":
		return fmt.Sprintf("its lease %s was given back %s ago", s.Lease, duration.HumanDuration(max(now.Sub(*s.Since), 0)))
	}
	return fmt.Sprintf("%s renewed its lease %s last %s ago", HolderText(s.Holder), s.Lease, duration.HumanDuration(now.Sub(*s.Since)))
}

// OperatorSilence tells whether an operator runs in a cluster; nil if one does.
func OperatorSilence(ctx context.Context, leases LeaseReader, now time.Time) (*Silence, error) {
	return readSilence(ctx, leases, leaseNamespace, leaseOperator, silentAfter, now)
}

// GardenletSilence is OperatorSilence for the gardenlet of a seed, in that seed.
func GardenletSilence(ctx context.Context, leases LeaseReader, now time.Time) (*Silence, error) {
	return readSilence(ctx, leases, leaseNamespace, leaseGardenlet, silentAfter, now)
}

// SeedSilence is GardenletSilence as the virtual garden knows it, where the gardenlet of each Seed
// with the condition GardenletReady renews a Lease.
func SeedSilence(ctx context.Context, leases LeaseReader, seed string, now time.Time) (*Silence, error) {
	return readSilence(ctx, leases, gardencorev1beta1.GardenerSystemSeedLeaseNamespace, seed, monitorPeriod, now)
}

// LeaseReader reads a Lease.
type LeaseReader func(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error)

// LeasesOf reads Leases with a client.
func LeasesOf(client kubernetes.Interface) LeaseReader {
	return func(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
		return client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

func readSilence(ctx context.Context, leases LeaseReader, namespace, name string, after time.Duration, now time.Time) (*Silence, error) {
	lease, err := leases(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		lease, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Lease %s/%s: %w", namespace, name, err)
	}
	return silenceOf(lease, namespace+"/"+name, after, now), nil
}

// StartOperator says how an operator that does not run is looked at and started, by the names that
// the chart gives it. kubectl is the command with what reaches the runtime cluster.
func StartOperator(kubectl string) string {
	return fmt.Sprintf("see %[1]s -n garden get pods -l app.kubernetes.io/component=operator; if it was scaled down, %[1]s -n garden scale deployment pergola-operator --replicas=1", kubectl)
}

// operatorSilence tells whether the operator of the landscape runs; nil if it does, or that is not
// known.
func (c *Converger) operatorSilence(ctx context.Context, now time.Time) *Silence {
	if c.links.clusters[Runtime] == nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(c.links.clusters[Runtime].RESTConfig())
	if err != nil {
		return nil
	}
	out, err := OperatorSilence(ctx, LeasesOf(client), now)
	if err != nil {
		return nil // whoever reads the Landscape is told why that does not work
	}
	return out
}

// heartbeats reads those of the gardenlets of the seeds: who is silent, by the name of the Seed. A
// Seed that never had a gardenlet of its own has no condition GardenletReady.
func (c *Converger) heartbeats(ctx context.Context, states []OwnerStatus, now time.Time) map[string]*Silence {
	out := map[string]*Silence{}
	if c.links.clusters[Virtual] == nil {
		return out
	}
	client, err := kubernetes.NewForConfig(c.links.clusters[Virtual].RESTConfig())
	if err != nil {
		return out
	}
	for _, s := range states {
		if s.Kind != "Seed" || condition.Get(s.Conditions, gardencorev1beta1.GardenletReady) == nil {
			continue
		}
		silence, err := SeedSilence(ctx, LeasesOf(client), s.Name, now)
		if err == nil && silence != nil {
			out[s.Name] = silence
		}
	}
	return out
}

// onlyGardenlet says why the condition is not True while the seed is converged all the same.
const onlyGardenlet = "A pergola apply converges the seed while it runs, and posts no such status: start the gardenlet of the seed, and the operator, to have it looked after."

// aged are the conditions of an owner whose gardenlet is silent: what it wrote last says nothing
// about now. Those of a Shoot hold for longer.
func (s *Silence) aged(kind string, conditions []gardencorev1beta1.Condition, live bool, now time.Time) []gardencorev1beta1.Condition {
	out := make([]gardencorev1beta1.Condition, 0, len(conditions))
	for _, c := range conditions {
		switch {
		case kind == "Seed" && c.Type == gardencorev1beta1.GardenletReady:
			c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionUnknown, "StatusUnknown", "Gardenlet stopped posting status updates: "+s.Text(now)+". "+onlyGardenlet
		case kind == "Seed" && c.Type == seedpublication.ConditionSettings:
			// what was published since is not in use
			c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionUnknown, "StatusUnknown", "Gardenlet stopped posting status updates; before: "+c.Message
		case kind == "Shoot" && !live && (s.Since == nil || now.Sub(*s.Since) >= shootMonitorPeriod):
			c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionUnknown, "StatusUnknown", "Gardenlet stopped sending heartbeats; before: "+c.Message
		}
		out = append(out, c)
	}
	return out
}

// age judges Seeds and Shoots whose gardenlet is silent.
func (c *Converger) age(ctx context.Context, states []OwnerStatus, live bool, now time.Time) {
	silent := c.heartbeats(ctx, states, now)
	for i, o := range c.members.all {
		seed := o.Local.Name()
		// While we do the work of the gardenlet ourselves, nobody misses it.
		if s := silent[seed]; s != nil && o.Input.Owner.Kind != owner.Garden && !c.holds(seed, leaseGardenlet) {
			states[i].Conditions = s.aged(states[i].Kind, states[i].Conditions, live, now)
			states[i].Ready = states[i].Ready && condition.AllTrue(states[i].Conditions)
		}
	}
}
