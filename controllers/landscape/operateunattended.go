package landscape

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/apply"
)

// UnattendedError says of an operation that was asked for that nobody is there who does it: to wait
// for its end is in vain.
type UnattendedError struct{ message string }

func (e *UnattendedError) Error() string { return e.message }

// attendance tells whether somebody is there who takes an operation up.
type attendance struct {
	// cluster has the object, runtime the operator.
	cluster, runtime *apply.Cluster
	// synced gives the Landscape object by which an operator syncs the landscape; nil for none.
	synced func(context.Context, time.Time) (*ObjectStatus, error)
	// reach are the flags by which a person reaches the runtime cluster with commands of Pergola.
	reach     string
	operation string
	// next is when it is looked again.
	next time.Time
}

// attendanceLook is how often it is looked whether a gardenlet still runs: as often as for the
// operator that a sync is followed of.
const attendanceLook = 10 * time.Second

// look is an error if nobody does the operation that is asked for on an object: no gardenlet of its
// seed runs, no operator, or none that may do something for a Garden, or no part of Pergola does it
// and no other controller has taken it up in the time in which one does. What cannot be read is no
// reason to end.
func (a *attendance) look(ctx context.Context, live *unstructured.Unstructured, asked, now time.Time) error {
	if now.Before(a.next) {
		return nil
	}
	a.next = now.Add(attendanceLook)
	ref := apply.RefOf(live)
	withdraw := a.cluster.CommandsHere(fmt.Sprintf("to withdraw it: kubectl annotate %s %s-", apply.KubectlName(ref), annotationOperation))
	if !isDone(ref.Kind, a.operation) {
		if now.Sub(asked) < takeUpTime {
			a.next = asked.Add(takeUpTime)
			return nil
		}
		return &UnattendedError{fmt.Sprintf("%s on %s was asked for, and nobody has taken it up within %s; no part of Pergola does it in this version. It stays asked for, and is not waited for any longer; %s",
			a.operation, ref, takeUpTime, withdraw)}
	}
	at := a.cluster
	byOperator := ref.Kind == "Garden" || ref.Kind == "Gardenlet"
	if byOperator {
		at = a.runtime
	}
	if at == nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(at.RESTConfig())
	if err != nil {
		return nil
	}
	if byOperator {
		return a.operator(ctx, ref, withdraw, now, isHeld(ctx, client, leaseOperator, now))
	}
	seed := ref.Name
	if ref.Kind == "Shoot" {
		seed, _, _ = unstructured.NestedString(live.Object, "spec", "seedName")
	}
	if seed == "" {
		return nil // it has none yet
	}
	silence, err := SeedSilence(ctx, LeasesOf(client), seed, now)
	if err != nil || silence == nil {
		return nil
	}
	return &UnattendedError{fmt.Sprintf("%s on %s was asked for, and nobody does it: no gardenlet of seed %s runs: %s. It stays asked for, and begins when one runs; %s",
		a.operation, ref, seed, silence.Text(now), withdraw)}
}

// operator is an error if no operator runs, or the one that reconciles the Garden is told to do
// nothing.
func (a *attendance) operator(ctx context.Context, ref apply.Ref, withdraw string, now time.Time, runs bool) error {
	if !runs {
		begins := "begins when one does"
		if ref.Kind == "Garden" {
			begins += ", or with pergola apply"
		}
		return &UnattendedError{fmt.Sprintf("%s on %s was asked for, and nobody does it: no operator runs. It stays asked for, and %s; %s", a.operation, ref, begins, withdraw)}
	}
	if ref.Kind != "Garden" {
		return nil // no Landscape is about it
	}
	if by, err := a.synced(ctx, now); err == nil && by != nil && by.Suspension != nil {
		name := by.Namespace + "/" + by.Name
		resume := strings.TrimSpace("pergola resume " + name + " " + a.reach)
		return &UnattendedError{fmt.Sprintf("%s on %s was asked for, and nobody does it: Landscape %s is suspended%s. It stays asked for, and begins after that (%s); %s",
			a.operation, ref, name, SuspensionText(by.Suspension), resume, withdraw)}
	}
	return nil
}

// isHeld tells whether somebody holds a lease; what cannot be read may be held.
func isHeld(ctx context.Context, client kubernetes.Interface, name string, now time.Time) bool {
	lease, err := client.CoordinationV1().Leases(leaseNamespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false
	case err != nil:
		return true
	}
	spec := lease.Spec
	if ptr.Deref(spec.HolderIdentity, "") == "" || spec.RenewTime == nil {
		return false
	}
	return now.Sub(spec.RenewTime.Time).Abs() < time.Duration(ptr.Deref(spec.LeaseDurationSeconds, int32(leaseDuration/time.Second)))*time.Second
}
