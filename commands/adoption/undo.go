// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// Undo starts the stopped controllers in reverse order: resource managers first, gardener-operator
// last. gardener-operator then reverts what Pergola applied. It can be interrupted and repeated.
func (a *Adopter) Undo(ctx context.Context) (started []string, err error) {
	if err := a.checkNoOtherReconciler(ctx); err != nil {
		return nil, err
	}
	clusters, err := a.seeds(ctx)
	if err != nil {
		return nil, err
	}
	clusters = append([]string{landscape.Runtime}, clusters...)
	records := map[string]*adoptionRecord{}
	for _, cluster := range clusters {
		if records[cluster], err = a.readRecord(ctx, cluster); err != nil {
			return nil, err
		}
	}
	for _, role := range slices.Backward(roles) {
		for _, cluster := range slices.Backward(clusters) {
			if role.isOnSeeds != (cluster != landscape.Runtime) {
				continue
			}
			s := records[cluster].entryOf("garden", role.deployment)
			if s == nil {
				continue
			}
			was, err := a.startController(ctx, cluster, *s)
			if err != nil {
				return started, fmt.Errorf("starting %s: Deployment %s/%s: %w", cluster, s.Namespace, s.Name, err)
			}
			if was {
				started = append(started, fmt.Sprintf("%s: Deployment %s/%s", cluster, s.Namespace, s.Name))
			}
			r := records[cluster]
			r.Stopped = slices.DeleteFunc(r.Stopped, func(other stoppedController) bool { return other.Namespace == s.Namespace && other.Name == s.Name })
			if err := a.writeRecord(ctx, cluster, r); err != nil {
				return started, err
			}
		}
	}
	return started, nil
}

// startController starts one controller; was reports whether upstream's Deployment still exists.
func (a *Adopter) startController(ctx context.Context, cluster string, s stoppedController) (was bool, err error) {
	c := a.Converger.Cluster(cluster)
	live, err := readLive(ctx, c, deploymentRef(s.Namespace, s.Name))
	if err != nil {
		return false, err
	}
	if s.IgnoredManagedResource != "" {
		if err := a.setIgnored(ctx, c, s.IgnoredManagedResource, nil); err != nil {
			return false, err
		}
	}
	switch {
	case live == nil:
		a.reportStep("%s: Deployment %s/%s no longer exists", cluster, s.Namespace, s.Name)
		return false, nil
	case isAppliedByPergola(live):
		a.reportStep("%s: Deployment %s/%s now belongs to Pergola: gardener-operator replaces it with its own", cluster, s.Namespace, s.Name)
		return false, nil
	}
	if replicasOf(live) == 0 {
		if err := a.scaleDeployment(ctx, c, s.Namespace, s.Name, s.Replicas); err != nil {
			return false, err
		}
	}
	a.reportStep("%s: Deployment %s/%s: scaled to %d", cluster, s.Namespace, s.Name, max(s.Replicas, replicasOf(live)))
	return true, a.restoreWebhooks(ctx, s.Webhooks)
}

// PergolaActiveError means that Pergola is at work on the landscape, so the previous controllers
// cannot be started.
type PergolaActiveError struct{ message string }

func (e *PergolaActiveError) Error() string { return e.message }

// checkNoOtherReconciler fails while a process other than gardener-operator converges the runtime
// cluster: they would work against each other.
func (a *Adopter) checkNoOtherReconciler(ctx context.Context) error {
	runtime := a.Converger.Cluster(landscape.Runtime)
	if runtime == nil {
		return errors.New("no access to the runtime cluster")
	}
	client, err := clientOf(runtime)
	if err != nil {
		return err
	}
	at := roles[0].lease
	live, err := client.CoordinationV1().Leases(at.namespace).Get(ctx, at.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return runtime.Explain(apply.Ref{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: at.namespace, Name: at.name}, "read", err)
	}
	holder := ptr.Deref(live.Spec.HolderIdentity, "")
	lasts := time.Duration(ptr.Deref(live.Spec.LeaseDurationSeconds, 15)) * time.Second
	if holder == "" || strings.HasPrefix(holder, operatorRole+"-") || a.Clock.Since(ptr.Deref(live.Spec.RenewTime, metav1.MicroTime{}).Time) > lasts {
		return nil
	}
	return &PergolaActiveError{fmt.Sprintf("lease %s/%s is held by %s: stop Pergola first; %s", at.namespace, at.name, holder,
		runtime.RewriteKubectlOrNameCluster("if that is its operator: kubectl -n garden scale deployment pergola-operator --replicas 0"))}
}
