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

// UnattendedError means that no running process handles a requested operation, so that waiting is
// useless.
type UnattendedError struct{ message string }

func (e *UnattendedError) Error() string { return e.message }

// attendance checks whether a running process handles an operation.
type attendance struct {
	// cluster contains the object; the operator runs in runtime.
	cluster, runtime *apply.Cluster
	// synced returns the Landscape object with which an operator syncs the landscape; nil if there
	// is none.
	synced func(context.Context, time.Time) (*ObjectStatus, error)
	// reach contains the flags of Pergola's commands for the runtime cluster.
	reach     string
	operation string
	// next is the time of the next check.
	next time.Time
}

// attendanceLook is the interval for checking that a gardenlet or operator runs: the same as when
// following a sync.
const attendanceLook = 10 * time.Second

// look returns an error if nobody handles the requested operation on an object. Either no gardenlet
// of its seed runs, or no operator that may change the Garden. Or no part of Pergola implements it,
// and no other controller has started it within takeUpTime. Failed reads are ignored.
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
		return nil // not scheduled yet
	}
	silence, err := SeedSilence(ctx, LeasesOf(client), seed, now)
	if err != nil || silence == nil {
		return nil
	}
	return &UnattendedError{fmt.Sprintf("%s on %s was asked for, and nobody does it: no gardenlet of seed %s runs: %s. It stays asked for, and begins when one runs; %s",
		a.operation, ref, seed, silence.Text(now), withdraw)}
}

// operator returns an error if no operator runs, or if the Landscape of the Garden is suspended.
func (a *attendance) operator(ctx context.Context, ref apply.Ref, withdraw string, now time.Time, runs bool) error {
	if !runs {
		begins := "begins when one does"
		if ref.Kind == "Garden" {
			begins += ", or with pergola apply"
		}
		return &UnattendedError{fmt.Sprintf("%s on %s was asked for, and nobody does it: no operator runs. It stays asked for, and %s; %s", a.operation, ref, begins, withdraw)}
	}
	if ref.Kind != "Garden" {
		return nil // independent of any Landscape
	}
	if by, err := a.synced(ctx, now); err == nil && by != nil && by.Suspension != nil {
		name := by.Namespace + "/" + by.Name
		resume := strings.TrimSpace("pergola resume " + name + " " + a.reach)
		return &UnattendedError{fmt.Sprintf("%s on %s was asked for, and nobody does it: Landscape %s is suspended%s. It stays asked for, and begins after that (%s); %s",
			a.operation, ref, name, SuspensionText(by.Suspension), resume, withdraw)}
	}
	return nil
}

// isHeld reports whether a process holds a lease; true if it cannot be read.
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
