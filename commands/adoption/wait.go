// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/internal/printable"
)

// pollUntil polls done until it succeeds, fails or ctx ends. done also describes what it waits for.
func (a *Adopter) pollUntil(ctx context.Context, done func() (bool, string, error)) error {
	poll := a.PollInterval
	if poll <= 0 {
		poll = time.Second
	}
	tick := a.Clock.NewTicker(poll)
	defer tick.Stop()
	for {
		ok, what, err := done()
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s; run the command again to continue: %w", what, ctx.Err())
		case <-tick.C():
		}
	}
}

// waitForPods waits until a Deployment has no pods.
func (a *Adopter) waitForPods(ctx context.Context, c *apply.Cluster, deployment *unstructured.Unstructured) error {
	raw, _, _ := unstructured.NestedMap(deployment.Object, "spec", "selector", "matchLabels")
	labels := map[string]string{}
	for key, value := range raw {
		labels[key] = fmt.Sprint(value)
	}
	if len(labels) == 0 {
		return nil
	}
	client, err := clientOf(c)
	if err != nil {
		return err
	}
	return a.pollUntil(ctx, func() (bool, string, error) {
		pods, err := client.CoreV1().Pods(deployment.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})})
		if err != nil {
			if ctx.Err() != nil {
				return false, "its pods could not be counted", nil
			}
			return false, "", c.Explain(apply.Ref{APIVersion: "v1", Kind: "Pod", Namespace: deployment.GetNamespace()}, "list", err)
		}
		n := 0
		for i := range pods.Items {
			if phase := pods.Items[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
				n++
			}
		}
		return n == 0, printable.WithCount(n, "pod") + " of it still running", nil
	})
}

// leaseAbandonedAfter is more than clocks differ: a holder that renewed its lease longer ago no
// longer runs.
const leaseAbandonedAfter = 10 * time.Minute

// waitForLease waits until the stopped controller has lost its lease: released, taken by another
// holder, or not renewed for its duration by our clock.
func (a *Adopter) waitForLease(ctx context.Context, of Controller) error {
	cluster := a.Converger.Cluster(of.lease.cluster)
	if cluster == nil {
		return nil // the lease cannot be read, but its pods no longer exist
	}
	client, err := clientOf(cluster)
	if err != nil {
		return err
	}
	var seen *coordinationv1.Lease
	var since time.Time
	return a.pollUntil(ctx, func() (bool, string, error) {
		live, err := client.CoordinationV1().Leases(of.lease.namespace).Get(ctx, of.lease.name, metav1.GetOptions{})
		ref := apply.Ref{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: of.lease.namespace, Name: of.lease.name}
		switch {
		case apierrors.IsNotFound(err):
			return true, "", nil
		case err != nil && ctx.Err() != nil:
			return false, ref.String() + " could not be read", nil
		case err != nil:
			return false, "", cluster.Explain(ref, "read", err)
		}
		holder := ptr.Deref(live.Spec.HolderIdentity, "")
		renewed := ptr.Deref(live.Spec.RenewTime, metav1.MicroTime{}).Time
		if !strings.HasPrefix(holder, of.Name+"-") || a.Clock.Since(renewed) > leaseAbandonedAfter {
			return true, "", nil
		}
		if seen == nil || seen.ResourceVersion != live.ResourceVersion {
			seen, since = live, a.Clock.Now()
		}
		lasts := time.Duration(ptr.Deref(live.Spec.LeaseDurationSeconds, 15)) * time.Second
		return a.Clock.Since(since) > lasts, fmt.Sprintf("cluster %s: %s is held by %s", cluster.Name(), ref, holder), nil
	})
}
