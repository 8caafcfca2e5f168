package landscape

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/apply"
)

// UnattendedError says of an operation that was asked for that nobody is there who does it: to wait for its end is in vain.
type UnattendedError struct{ message string }

func (e *UnattendedError) Error() string { return e.message }

// attendance tells whether somebody is there who takes an operation up.
type attendance struct {
	cluster   *apply.Cluster
	operation string
	// next is when it is looked again.
	next time.Time
}

// attendanceLook is how often it is looked whether a gardenlet still runs: as often as for the operator that a sync is followed of.
const attendanceLook = 10 * time.Second

// look is an error if nobody does the operation that is asked for on an object: no gardenlet of its seed runs, or no part of Pergola does it and no
// other controller has taken it up in the time in which one does. What cannot be read is no reason to end.
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
	client, err := kubernetes.NewForConfig(a.cluster.RESTConfig())
	if err != nil {
		return nil
	}
	if ref.Kind == "Garden" {
		if isHeld(ctx, client, leaseOperator, now) {
			return nil
		}
		return &UnattendedError{fmt.Sprintf("%s on %s was asked for, and nobody does it: no operator runs. It stays asked for, and begins when one does, or with pergola apply; %s",
			a.operation, ref, withdraw)}
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
