package health

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Status is an object's state in the terms of kstatus.
type Status string

const (
	// StatusCurrent means the object is what its specification asks for.
	StatusCurrent Status = "Current"
	// StatusInProgress means the object is on its way there.
	StatusInProgress Status = "InProgress"
	// StatusFailed means the object will not get there without a change.
	StatusFailed Status = "Failed"
	// StatusTerminating means the object is being deleted.
	StatusTerminating Status = "Terminating"
	// StatusNotFound means the object does not exist.
	StatusNotFound Status = "NotFound"
	// StatusUnknown means the state could not be told.
	StatusUnknown Status = "Unknown"
)

// annotationSkipHealthCheck switches all checks of an object off
// (pkg/apis/resources/v1alpha1: SkipHealthCheck).
const annotationSkipHealthCheck = "resources.gardener.cloud/skip-health-check"

// Verdict is the outcome of judging one object.
type Verdict struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Healthy by Gardener's rule of the kind; true for kinds without a rule.
	Healthy bool `json:"healthy"`
	// Progressing means a rollout is under way. An object can be healthy and progressing.
	Progressing bool `json:"progressing"`
	// Status in the terms of kstatus.
	Status Status `json:"status"`
	// Reason in CamelCase as the conditions of a ManagedResource have it, for example DeploymentUnhealthy or
	// DeploymentProgressing. Empty when healthy and not progressing.
	Reason string `json:"reason"`
	// Message for a person, with the cause in the pods where those were given.
	Message string `json:"message"`
	// Codes are Gardener's error codes (ERR_…), so far as the object reports them.
	Codes []string `json:"codes,omitempty"`
}

// Option adds an input to Check beyond the object.
type Option func(*inputs)

type inputs struct {
	pods         []corev1.Pod
	havePods     bool
	now          time.Time
	identity     *Gardener
	upstreamOnly bool
}

// WithPods gives the pods of the object's namespace, or a part of them that holds all that the object selects. A
// Deployment then counts as progressing until old pods are gone, and messages name the cause found in a pod.
func WithPods(pods []corev1.Pod) Option {
	return func(in *inputs) { in.pods, in.havePods = pods, true }
}

// At gives the time of the judgement. Only the kstatus term of a pod that could not be scheduled depends on it:
// InProgress in its first 15 seconds, then Failed. Without a time it stays InProgress.
func At(now time.Time) Option { return func(in *inputs) { in.now = now } }

// WithGardener gives the instance that should have reconciled a Seed. Without it any instance will do.
func WithGardener(identity Gardener) Option {
	return func(in *inputs) { in.identity = &identity }
}

// OnlyManagedResourceKinds limits the rules to the kinds that upstream's resource manager judges
// (pkg/resourcemanager/controller/health/utils); all others are healthy by existing.
func OnlyManagedResourceKinds() Option { return func(in *inputs) { in.upstreamOnly = true } }

// NotFound is the verdict on an object that should exist and does not.
func NotFound(gvk schema.GroupVersionKind, namespace, name string) Verdict {
	return Verdict{
		Kind: gvk.Kind, Namespace: namespace, Name: name,
		Status: StatusNotFound, Reason: gvk.Kind + "Missing", Message: gvk.Kind + " does not exist",
	}
}

// Check judges the object by the rule of its group and kind. A nil object is NotFound.
func Check(obj *unstructured.Unstructured, opts ...Option) Verdict {
	if obj == nil {
		return NotFound(schema.GroupVersionKind{}, "", "")
	}
	in := inputs{}
	for _, opt := range opts {
		opt(&in)
	}

	v := Verdict{Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(), Healthy: true}
	r, found := ruleFor(obj.GroupVersionKind().GroupKind())
	if in.upstreamOnly && !r.managedResource {
		r, found = rule{}, false
	}
	if obj.GetAnnotations()[annotationSkipHealthCheck] == "true" {
		r, found = rule{}, false
	}

	var failure *Failure
	if r.check != nil {
		failure = r.check(obj, in)
	}
	if r.progressing != nil {
		v.Progressing, v.Message = r.progressing(obj, in)
	}
	switch {
	case failure != nil:
		v.Healthy, v.Message, v.Codes = false, failure.Message, failure.Codes
		v.Reason = failure.Reason
		if v.Reason == "" {
			v.Reason = v.Kind + "Unhealthy"
		}
	case v.Progressing:
		v.Reason = v.Kind + "Progressing"
	}
	if in.havePods && (failure != nil || v.Progressing) {
		v.Message = withPodReason(obj, in.pods, v.Message)
	}

	v.Status = statusOf(obj, found && r.ownStatus, failure, v.Progressing, in)
	if v.Message == "" {
		v.Message = v.Kind + " exists"
		if r.check != nil {
			v.Message = v.Kind + " is healthy"
		}
	}
	return v
}

// statusOf takes the library's answer for the kinds that kstatus knows, and derives one for those that it would call
// Current for want of a Ready condition.
func statusOf(obj *unstructured.Unstructured, own bool, failure *Failure, progressing bool, in inputs) Status {
	if !own || obj.GetDeletionTimestamp() != nil {
		status, _ := kstatusAt(obj, in.now)
		return status
	}
	switch {
	case failure != nil && failure.Waiting:
		return StatusInProgress
	case failure != nil:
		return StatusFailed
	case progressing:
		return StatusInProgress
	default:
		return StatusCurrent
	}
}
