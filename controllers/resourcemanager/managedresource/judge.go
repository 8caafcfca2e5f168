// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/health"
)

// Judge judges the health of live objects of one set, from the live cache. It reads related objects
// only for the causes of the first unhealthy object and the first one that is rolling out.
type Judge struct {
	Cluster *apply.Cluster
	// Rules take precedence over those of the kinds; it is nil for none.
	Rules health.Rules
	// ExistenceOnly accepts every existing object of a kind without a rule. By default, such
	// objects are judged by kstatus conventions.
	ExistenceOnly bool
	// WaitForOldPods counts a Deployment as rolling out until the pods of its previous revision no
	// longer exist. That costs a request for each Deployment.
	WaitForOldPods bool
	// Clock tells whether a Deployment changed recently, so that its pods are worth a check: an
	// available one may have crashing containers. Nil disables the check.
	Clock clock.PassiveClock
}

func (j Judge) FirstProblems(ctx context.Context, refs []apply.Ref) (bad, rolling *health.Verdict, err error) {
	found, err := j.judgeAll(ctx, refs)
	return found.unhealthy, found.rolling, err
}

// firstProblems are the first unhealthy object, the first one that is rolling out, and how many
// more there are of each.
type firstProblems struct {
	unhealthy, rolling         *health.Verdict
	moreUnhealthy, moreRolling int
}

func (j Judge) judgeAll(ctx context.Context, refs []apply.Ref) (out firstProblems, err error) {
	var badRef, rollingRef apply.Ref
	for _, ref := range refs {
		v, err := j.judgeCached(ctx, ref)
		if err != nil {
			return out, err
		}
		switch {
		case v.Healthy:
		case out.unhealthy == nil:
			out.unhealthy, badRef = &v, ref
		default:
			out.moreUnhealthy++
		}
		switch {
		case !v.Progressing:
		case out.rolling == nil:
			out.rolling, rollingRef = &v, ref
		default:
			out.moreRolling++
		}
	}
	switch {
	case out.unhealthy != nil && out.rolling != nil && badRef == rollingRef:
		*out.unhealthy = j.withCause(ctx, badRef, *out.unhealthy)
		out.rolling = out.unhealthy
	default:
		if out.unhealthy != nil {
			*out.unhealthy = j.withCause(ctx, badRef, *out.unhealthy)
		}
		if out.rolling != nil {
			*out.rolling = j.withCause(ctx, rollingRef, *out.rolling)
		}
	}
	return out, nil
}

// formatVerdict formats a verdict for a condition: object, cause, message of the object, and the
// number of other objects.
func formatVerdict(v health.Verdict, more int) string {
	text := v.Kind + " " + v.Name
	if v.Namespace != "" {
		text = v.Kind + " " + v.Namespace + "/" + v.Name
	}
	own := strings.TrimSpace(v.Message)
	if v.Cause != nil {
		text += ": " + strings.TrimSuffix(v.Cause.String(), ".")
		own = strings.TrimRight(strings.TrimSuffix(own, v.Cause.String()), "; ")
	}
	if own = strings.TrimSuffix(own, "."); own != "" {
		text += ": " + own
	}
	if more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// JudgeObject judges one live object, with its cause.
func (j Judge) JudgeObject(ctx context.Context, ref apply.Ref) (health.Verdict, error) {
	v, err := j.judgeCached(ctx, ref)
	if err != nil || v.Healthy && !v.Progressing {
		return v, err
	}
	return j.withCause(ctx, ref, v), nil
}

// JudgeLive judges the live object alone; nil means that it does not exist.
func (j Judge) JudgeLive(object *unstructured.Unstructured) health.Verdict {
	return health.Check(object, j.healthOptions()...)
}

func (j Judge) healthOptions(more ...health.Option) []health.Option {
	if !j.ExistenceOnly {
		more = append(more, health.JudgeAllKinds())
	}
	if j.Clock != nil {
		more = append(more, health.WithTime(j.Clock.Now()))
	}
	return append(more, health.WithRules(j.Rules))
}

func (j Judge) judgeCached(ctx context.Context, ref apply.Ref) (health.Verdict, error) {
	object, err := j.Cluster.Get(ctx, ref)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return health.NotFound(ref.GVK(), ref.Namespace, ref.Name), nil
	}
	if err != nil {
		return health.Verdict{}, j.Cluster.Explain(ref, "read", err)
	}
	v := j.JudgeLive(object)
	gone := j.WaitForOldPods && !v.Progressing && ref.Kind == "Deployment"
	crashes := j.Clock != nil && health.CanBeCrashing(object, j.Clock.Now())
	if !v.Healthy || !gone && !crashes {
		return v, nil
	}
	// Pods of a previous revision may vanish at any moment, but a crash is visible for long.
	pods := health.RelatedObjects{}
	if gone {
		pods = j.relatedObjects(ctx, object, health.RelatedLists{Pods: true})
	} else {
		pods.Pods = j.podsAfterChange(ctx, object)
	}
	if pods.Pods != nil {
		if with := health.Check(object, j.healthOptions(health.WithRelatedObjects(pods))...); gone || !with.Healthy {
			return with, nil
		}
	}
	return v, nil
}

// podWatchLag is how long after its last change a Deployment's pods are read live. Their watch may
// lag behind that of Deployments, and clocks may differ slightly.
const podWatchLag = 2 * time.Second

// podsAfterChange returns the pods of a Deployment's namespace after its last change. It watches
// them, so that no requests are sent while nothing changes.
func (j Judge) podsAfterChange(ctx context.Context, object *unstructured.Unstructured) []corev1.Pod {
	if j.Clock.Since(health.LastConditionChange(object)) < podWatchLag {
		return j.relatedObjects(ctx, object, health.RelatedLists{Pods: true}).Pods
	}
	found, err := j.Cluster.Follow(ctx, apply.FollowedList{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespace: object.GetNamespace(), Fields: "status"})
	if err != nil {
		return nil
	}
	return convertObjects[corev1.Pod](found)
}

// withCause adds the cause from related objects to a verdict. It ignores unreadable objects: the
// verdict is true without them.
func (j Judge) withCause(ctx context.Context, ref apply.Ref, v health.Verdict) health.Verdict {
	object, err := j.Cluster.Get(ctx, ref)
	if err != nil {
		return v
	}
	return health.Check(object, j.healthOptions(health.WithRelatedObjects(j.relatedObjects(ctx, object, health.NeededLists(object))))...)
}

// maxEvents is the maximum number of events to read of a namespace.
const maxEvents = 500

func (j Judge) relatedObjects(ctx context.Context, object *unstructured.Unstructured, need health.RelatedLists) health.RelatedObjects {
	var out health.RelatedObjects
	selected := metav1.ListOptions{}
	if selector, ok := health.PodSelector(object); ok {
		selected.LabelSelector = selector.String()
	} else {
		need.Pods, need.ReplicaSets = false, false
	}
	namespace := object.GetNamespace()
	if need.Pods {
		out.Pods = listObjects[corev1.Pod](ctx, j.Cluster, corev1.SchemeGroupVersion.WithResource("pods"), namespace, selected)
	}
	if need.ReplicaSets {
		out.ReplicaSets = listObjects[appsv1.ReplicaSet](ctx, j.Cluster, appsv1.SchemeGroupVersion.WithResource("replicasets"), namespace, selected)
	}
	pending := object.GetKind() == "Pod"
	for _, pod := range out.Pods {
		pending = pending || pod.Status.Phase == corev1.PodPending
	}
	events := corev1.SchemeGroupVersion.WithResource("events")
	if need.Claims && pending {
		out.Claims = listObjects[corev1.PersistentVolumeClaim](ctx, j.Cluster, corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), namespace, metav1.ListOptions{})
		// Events of type Normal say why a claim has no volume.
		out.Events = listObjects[corev1.Event](ctx, j.Cluster, events, namespace, metav1.ListOptions{Limit: maxEvents, FieldSelector: "involvedObject.kind=PersistentVolumeClaim"})
	}
	if need.Events && namespace != "" {
		out.Events = append(out.Events, listObjects[corev1.Event](ctx, j.Cluster, events, namespace, metav1.ListOptions{Limit: maxEvents, FieldSelector: "type=Warning"})...)
	}
	return out
}

// listObjects reads objects of a kind; nil means that it failed.
func listObjects[T any](ctx context.Context, c *apply.Cluster, gvr schema.GroupVersionResource, namespace string, o metav1.ListOptions) []T {
	list, err := c.Dynamic().Resource(gvr).Namespace(namespace).List(ctx, o)
	if err != nil {
		return nil
	}
	items := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		items[i] = &list.Items[i]
	}
	return convertObjects[T](items)
}

func convertObjects[T any](items []*unstructured.Unstructured) []T {
	out := make([]T, 0, len(items))
	for _, item := range items {
		var one T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &one); err != nil {
			return nil
		}
		out = append(out, one)
	}
	return out
}
