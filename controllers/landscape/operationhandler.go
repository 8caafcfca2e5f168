// SPDX-License-Identifier: Apache-2.0

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

// NoHandlerError means that no running process handles a requested operation, so waiting is
// useless.
type NoHandlerError struct{ message string }

func (e *NoHandlerError) Error() string { return e.message }

// handlerCheck checks whether a running process handles an operation.
type handlerCheck struct {
	// cluster contains the object; the operator runs in runtime.
	cluster, runtime *apply.Cluster
	// readObject returns the Landscape object with which an operator syncs the landscape; it is nil
	// if there is none.
	readObject func(context.Context, time.Time) (*ObjectStatus, error)
	// runtimeFlags contains the flags of Pergola's commands for the runtime cluster.
	runtimeFlags string
	operation    string
	// nextCheck is the time of the next check.
	nextCheck time.Time
}

// handlerCheckInterval is the interval for checking that a gardenlet or operator runs: the same as
// when following a sync.
const handlerCheckInterval = 10 * time.Second

// checkHandler returns an error if no one handles the requested operation on an object. Either no
// gardenlet of its seed runs, or no operator that may change the Garden. Or no part of Pergola
// implements it, and no other controller has started it within operationStartTime. Failed reads are
// ignored.
func (a *handlerCheck) checkHandler(ctx context.Context, live *unstructured.Unstructured, asked, now time.Time) error {
	if now.Before(a.nextCheck) {
		return nil
	}
	a.nextCheck = now.Add(handlerCheckInterval)
	ref := apply.RefOf(live)
	withdraw := a.cluster.RewriteKubectlOrNameCluster(fmt.Sprintf("to withdraw it: kubectl annotate %s %s-", apply.KubectlName(ref), annotationOperation))
	if !isImplemented(ref.Kind, a.operation) {
		if now.Sub(asked) < operationStartTime {
			a.nextCheck = asked.Add(operationStartTime)
			return nil
		}
		return &NoHandlerError{fmt.Sprintf("%s on %s was requested, but did not start within %s; no part of Pergola implements it in this version. The request stays, without further waiting; %s",
			a.operation, ref, operationStartTime, withdraw)}
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
		return a.checkOperator(ctx, ref, withdraw, now, isLeaseHeld(ctx, client, operatorLease, now))
	}
	seed := ref.Name
	if ref.Kind == "Shoot" {
		seed, _, _ = unstructured.NestedString(live.Object, "spec", "seedName")
	}
	if seed == "" {
		return nil // not scheduled yet
	}
	silence, err := StaleSeedGardenlet(ctx, NewLeaseReader(client), seed, now)
	if err != nil || silence == nil {
		return nil
	}
	return &NoHandlerError{fmt.Sprintf("%s on %s was requested, but cannot start: no gardenlet of seed %s runs: %s. The request stays, and starts when one runs; %s",
		a.operation, ref, seed, silence.Text(now), withdraw)}
}

// checkOperator returns an error if no operator runs, or if the Landscape of the Garden is
// suspended.
func (a *handlerCheck) checkOperator(ctx context.Context, ref apply.Ref, withdraw string, now time.Time, runs bool) error {
	if !runs {
		begins := "starts when one runs"
		if ref.Kind == "Garden" {
			begins += ", or with pergola apply"
		}
		return &NoHandlerError{fmt.Sprintf("%s on %s was requested, but cannot start: no operator runs. The request stays, and %s; %s", a.operation, ref, begins, withdraw)}
	}
	if ref.Kind != "Garden" {
		return nil // independent of any Landscape
	}
	if by, err := a.readObject(ctx, now); err == nil && by != nil && by.Suspension != nil {
		name := by.Namespace + "/" + by.Name
		resume := strings.TrimSpace("pergola resume " + name + " " + a.runtimeFlags)
		return &NoHandlerError{fmt.Sprintf("%s on %s was requested, but cannot start: Landscape %s is suspended%s. The request stays, and starts after that (%s); %s",
			a.operation, ref, name, SuspensionText(by.Suspension), resume, withdraw)}
	}
	return nil
}

// isLeaseHeld reports whether a process holds a lease; it is true if the lease cannot be read.
func isLeaseHeld(ctx context.Context, client kubernetes.Interface, name string, now time.Time) bool {
	lease, err := client.CoordinationV1().Leases(leasesNamespace).Get(ctx, name, metav1.GetOptions{})
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
