// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/owner/changecounts"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/render"
)

// pollInterval is the time between checks of the live cache during a wait; they make no request.
const pollInterval = 200 * time.Millisecond

// detailInterval is the time between reads of pods, which explain why an object is unhealthy.
const detailInterval = 3 * time.Second

// repeatInterval is the time after which a step repeats an unchanged message about its wait.
const repeatInterval = 25 * time.Second

// waiter has the health checks of an applied bundle.
type waiter struct {
	bundle            render.Bundle
	cluster           *apply.Cluster
	refs              []apply.Ref
	managedReconciler *managedresource.Reconciler
	// requestTimestamps maps extension objects to the timestamps of their requests.
	requestTimestamps map[apply.Ref]string
	// changeCounts counts the changes by the apply of the bundle.
	changeCounts changecounts.ChangeCounts
	// reapply repeats the apply of the bundle; reappliedAt is the time of the last repetition.
	reapply     func(context.Context) (waiter, error)
	reappliedAt time.Time
	// reapplyError is the error of a repetition, which is then retried.
	reapplyError string
}

// waitAll waits for all bundles of a node, first for health, then for the rollout.
func (r *run) waitAll(ctx context.Context, waits []waiter, rolledOut bool, report func(flow.State, string)) error {
	tick := r.reconciler.Clock.NewTicker(pollInterval)
	defer tick.Stop()
	said, saidAt, detailed, confirmed := "", r.reconciler.Clock.Now(), r.reconciler.Clock.Now(), time.Time{}
	for {
		details := r.reconciler.Clock.Since(detailed) >= detailInterval
		if details {
			detailed = r.reconciler.Clock.Now()
			r.reapplyDeleted(ctx, waits)
			if err := r.repeatRequests(ctx, waits); err != nil && ctx.Err() == nil {
				return err
			}
		}
		open, err := r.judgeBundles(ctx, waits, rolledOut, details)
		if err != nil {
			return err
		}
		if len(open) == 0 && !details && r.reconciler.Clock.Since(confirmed) >= detailInterval {
			// Healthy objects may be between two crashes.
			confirmed, details = r.reconciler.Clock.Now(), true
			if open, err = r.judgeBundles(ctx, waits, rolledOut, details); err != nil {
				return err
			}
		}
		if len(open) == 0 && details {
			return r.finishWait(ctx, waits, rolledOut)
		}
		if text := strings.Join(open, "; "); details && (text != said || r.reconciler.Clock.Since(saidAt) >= repeatInterval) {
			said, saidAt = text, r.reconciler.Clock.Now()
			report(flow.Running, text)
		}
		select {
		case <-ctx.Done():
			return r.timeoutError(ctx, waits, rolledOut, said)
		case <-tick.C():
		}
	}
}

// judgeBundles judges all bundles of a node and returns the open problems.
func (r *run) judgeBundles(ctx context.Context, waits []waiter, rolledOut, details bool) (open []string, err error) {
	for _, w := range waits {
		if w.reapplyError != "" {
			open = append(open, w.reapplyError)
		}
		problem, err := r.judgeBundle(ctx, w, rolledOut, details)
		if err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("bundle %s: %w", w.bundle.Name, err)
		}
		if problem != "" {
			open = append(open, problem)
		}
	}
	return open, nil
}

// reapplyDeleted repeats the apply of bundles whose objects someone has deleted during a step:
// drift repair waits for the run. It does so at most once per repeatInterval.
func (r *run) reapplyDeleted(ctx context.Context, waits []waiter) {
	for i, w := range waits {
		if w.reapply == nil || r.reconciler.Clock.Since(w.reappliedAt) < repeatInterval || w.reapplyError == "" && !slices.ContainsFunc(w.refs, func(ref apply.Ref) bool {
			_, err := w.cluster.Get(ctx, ref)
			return apierrors.IsNotFound(err)
		}) {
			continue
		}
		next, err := w.reapply(ctx)
		if err != nil {
			waits[i].reappliedAt, waits[i].reapplyError = r.reconciler.Clock.Now(), strings.Join(apply.Problems(err), "; ")
			continue
		}
		next.mergeEarlier(w)
		next.reappliedAt = r.reconciler.Clock.Now()
		waits[i] = next
	}
}

// mergeEarlier merges the records of an earlier apply of the bundle.
func (w *waiter) mergeEarlier(former waiter) {
	w.changeCounts.AddCounts(former.changeCounts)
	for ref, stamp := range former.requestTimestamps {
		if w.requestTimestamps != nil && w.requestTimestamps[ref] == "" {
			w.requestTimestamps[ref] = stamp
		}
	}
}

// judgeBundle judges one bundle from the cache; with details it also reads the pods.
func (r *run) judgeBundle(ctx context.Context, w waiter, rolledOut, details bool) (string, error) {
	for _, ref := range w.refs {
		v, err := r.quickVerdict(ctx, w, ref)
		if details && err == nil && v.Reason != reasonRequestPending {
			v, err = r.reconciler.judgeForCluster(w.cluster).JudgeObject(ctx, ref)
		}
		if err != nil {
			return "", w.cluster.Explain(ref, "check", err)
		}
		if !v.Healthy || rolledOut && v.Progressing {
			return describeVerdict(w.cluster.Name(), v), nil
		}
		if rolledOut {
			obj, err := w.cluster.Get(ctx, ref)
			if text := rolloutProgress(obj); err == nil && text != "" {
				return "cluster " + w.cluster.Name() + ": " + ref.String() + ": " + text, nil
			}
		}
	}
	return "", nil
}

// rolloutProgress describes an unfinished rollout of a Deployment; the result is empty if finished.
// The condition alone may be wrong briefly: after a rollback to an earlier template, it stays
// NewReplicaSetAvailable until the first new pod exists (kube-controller-manager:
// syncRolloutStatus).
func rolloutProgress(obj *unstructured.Unstructured) string {
	if obj == nil || obj.GetKind() != "Deployment" {
		return ""
	}
	wanted, found, err := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	if err != nil || !found {
		wanted = 1
	}
	all, _, _ := unstructured.NestedInt64(obj.Object, "status", "replicas")
	updated, _, _ := unstructured.NestedInt64(obj.Object, "status", "updatedReplicas")
	if updated >= wanted && all <= updated {
		return ""
	}
	return fmt.Sprintf("DeploymentProgressing: %d of %d replicas are up to date, %d old ones remain", updated, wanted, all-updated)
}

// reasonRequestPending is the reason of an extension object that has not seen the request yet: its
// status is about the previous one.
const reasonRequestPending = "Pending"

func (r *run) quickVerdict(ctx context.Context, w waiter, ref apply.Ref) (health.Verdict, error) {
	obj, err := w.cluster.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return health.NotFound(ref.GVK(), ref.Namespace, ref.Name), nil
	}
	if err != nil {
		return health.Verdict{}, err
	}
	if stamp, ok := w.requestTimestamps[ref]; ok && obj.GetAnnotations()[annotationTimestamp] != stamp {
		return health.Verdict{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Reason: reasonRequestPending, Message: "its controller has not seen the request to reconcile yet"}, nil
	}
	return r.reconciler.judgeForCluster(w.cluster).JudgeLive(obj), nil
}

func describeVerdict(cluster string, v health.Verdict) string {
	name := v.Name
	if v.Namespace != "" {
		name = v.Namespace + "/" + v.Name
	}
	text := "cluster " + cluster + ": " + v.Kind + " " + name
	if v.Reason != "" {
		text += ": " + v.Reason
	}
	if v.Message != "" {
		// Foreign messages end in a full stop, but the sentence continues here.
		text += ": " + strings.ReplaceAll(v.Message, ".; ", "; ")
	}
	return text
}

// finishWait writes the health conditions of ManagedResources with healthy objects, and finishes
// removals.
func (r *run) finishWait(ctx context.Context, waits []waiter, rolledOut bool) error {
	if !rolledOut {
		return nil
	}
	for _, w := range waits {
		if err := r.reconciler.finishRemovals(ctx, r.owner, w.bundle); err != nil {
			return err
		}
		if w.managedReconciler == nil {
			continue
		}
		if err := w.checkManaged(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w waiter) checkManaged(ctx context.Context) error {
	mr, err := w.managedReconciler.Read(ctx, w.bundle.Namespace, w.bundle.Name)
	if err != nil {
		return err
	}
	_, err = w.managedReconciler.CheckHealth(ctx, mr)
	return err
}

// timeoutError returns the open problems, one error per object with the reason of its pods. After a
// step timeout the runner adds the last report, which timeoutError does not repeat.
func (r *run) timeoutError(ctx context.Context, waits []waiter, rolledOut bool, said string) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) || isLeaseLost(ctx) {
		return fmt.Errorf("interrupted: %w", cause)
	}
	goal := "healthy"
	if rolledOut {
		goal = "rolled out"
	}
	detail, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	var lines []string
	for _, w := range waits {
		problem, err := r.judgeBundle(detail, w, rolledOut, true)
		switch {
		case err != nil:
			lines = append(lines, err.Error())
		case problem != "":
			lines = append(lines, problem)
		}
		if w.managedReconciler != nil {
			if err := w.checkManaged(detail); err != nil {
				lines = append(lines, err.Error())
			}
		}
	}
	text := strings.Join(lines, "; ")
	if !errors.Is(cause, context.DeadlineExceeded) && text == said {
		return fmt.Errorf("not %s in time", goal)
	}
	return fmt.Errorf("not %s in time: %s", goal, text)
}

// waitForVirtualGarden waits until the API server of the virtual garden answers.
func (r *run) waitForVirtualGarden(ctx context.Context) error {
	if r.owner.Target == nil {
		return errors.New("no access to the virtual garden: set spec.clusters.virtual, or give --kubeconfig virtual=PATH on a command line. Otherwise the runtime cluster provides it; in the cluster, only for Landscapes of namespace garden")
	}
	return r.waitForTarget(ctx, "the virtual garden")
}

// waitForTarget waits until the API server of the owner answers; the error calls it what.
func (r *run) waitForTarget(ctx context.Context, what string) error {
	tick := r.reconciler.Clock.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := apiServerHealthy(ctx, r.owner.Target)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", what, r.owner.Target.Explain(apply.Ref{}, "read /healthz", err))
		case <-tick.C():
		}
	}
}

func apiServerHealthy(ctx context.Context, c *apply.Cluster) error {
	client, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	_, err = client.RESTClient().Get().AbsPath("/healthz").DoRaw(ctx)
	return err
}
