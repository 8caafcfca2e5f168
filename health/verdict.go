package health

import (
	"strconv"
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

// Ground is why an object counts as healthy.
type Ground int

const (
	// GroundExistence means that no rule applies to the object.
	GroundExistence Ground = iota
	// GroundRule means that a rule has judged the object.
	GroundRule
	// GroundSkipped means that an annotation of the object switches its checks off.
	GroundSkipped
)

// Verdict is the outcome of judging one object.
type Verdict struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Healthy by Gardener's rule of the kind; true for kinds without a rule, but see JudgeAllKinds.
	Healthy bool `json:"healthy"`
	// Progressing means a rollout is under way. An object can be healthy and progressing.
	Progressing bool `json:"progressing"`
	// Status in the terms of kstatus.
	Status Status `json:"status"`
	// Reason in CamelCase as the conditions of a ManagedResource have it, for example
	// DeploymentUnhealthy or DeploymentProgressing. Empty when healthy and not progressing.
	Reason string `json:"reason"`
	// Message for a person, with the cause where what stands around the object was given.
	Message string `json:"message"`
	// Codes are Gardener's error codes (ERR_…), so far as the object reports them or its cause
	// tells them.
	Codes []string `json:"codes,omitempty"`
	// Cause is what was found around the object, see WithAround. It is part of the message, too.
	Cause *Cause `json:"cause,omitempty"`
	// Ground of a healthy object, for people.
	Ground Ground `json:"-"`
}

// Option adds an input to Check beyond the object.
type Option func(*inputs)

type inputs struct {
	around       Around
	havePods     bool
	now          time.Time
	identity     *Gardener
	upstreamOnly bool
	allKinds     bool
	rules        Rules
}

// WithPods gives the pods of the object's namespace, or a part of them that holds all that the
// object selects. A Deployment then counts as progressing until old pods are gone, and messages
// name the cause found in a pod.
func WithPods(pods []corev1.Pod) Option {
	return func(in *inputs) { in.around.Pods, in.havePods = pods, true }
}

// WithAround gives what stands around the object, so that the verdict can name the cause. Pods that
// are not nil count as given by WithPods.
func WithAround(around Around) Option {
	return func(in *inputs) { in.around, in.havePods = around, around.Pods != nil }
}

// At gives the time of the judgement. The kstatus term of a pod that could not be scheduled depends
// on it: InProgress in its first 15 seconds, then Failed; without a time it stays InProgress. So
// does whether a Deployment counts as crashing, which takes its pods, too: without a time it never
// does.
func At(now time.Time) Option { return func(in *inputs) { in.now = now } }

// WithGardener gives the instance that should have reconciled a Seed. Without it any instance will
// do.
func WithGardener(identity Gardener) Option {
	return func(in *inputs) { in.identity = &identity }
}

// OnlyManagedResourceKinds limits the rules to the kinds that upstream's resource manager judges
// (pkg/resourcemanager/controller/health/utils); all others are healthy by existing.
func OnlyManagedResourceKinds() Option { return func(in *inputs) { in.upstreamOnly = true } }

// JudgeAllKinds has also those kinds judged that Gardener has no rule for, in the terms of kstatus:
// such an object is unhealthy when it will not get well without a change (Stalled is True, a claim
// has lost its volume), and progressing while it is on its way (its generation is not observed,
// Ready is not True, a claim is not bound) or being deleted. Without the option they are healthy by
// existing, as upstream has it, and only the status and the message tell more.
func JudgeAllKinds() Option { return func(in *inputs) { in.allKinds = true } }

// NotFound is the verdict on an object that should exist and does not.
func NotFound(gvk schema.GroupVersionKind, namespace, name string) Verdict {
	return Verdict{
		Kind: gvk.Kind, Namespace: namespace, Name: name,
		Status: StatusNotFound, Reason: gvk.Kind + "Missing", Message: gvk.Kind + " does not exist",
	}
}

// judgement is what the rules say of an object, before it is put into words.
type judgement struct {
	failure     *Failure
	progressing bool
	// progress is the message while the object is not unhealthy.
	progress string
	// rolledOut means that progress says no more than that nothing is under way.
	rolledOut bool
	// judged means that something was looked at besides existence.
	judged bool
	// own means that the status follows from the judgement instead of kstatus.
	own bool
	// ground is why the object is healthy where it is.
	ground Ground
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
	j := judge(obj, in)

	v := Verdict{
		Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(),
		Healthy: j.failure == nil, Progressing: j.progressing, Message: j.progress, Ground: j.ground,
	}
	switch {
	case j.failure != nil:
		v.Message, v.Codes, v.Reason = j.failure.Message, j.failure.Codes, j.failure.Reason
		if v.Reason == "" {
			v.Reason = v.Kind + "Unhealthy"
		}
	case v.Progressing:
		v.Reason = v.Kind + "Progressing"
	}
	if !v.Healthy || v.Progressing {
		if cause, ok := FindCause(obj, in.around); ok {
			v.Cause, v.Message, v.Codes = &cause, joinMessages(v.Message, cause.String()), mergeCodes(v.Codes, cause.Message)
		}
	}

	var told string
	v.Status, told = statusOf(obj, j, in)
	switch doubted := v.Healthy && !v.Progressing && v.Status != StatusCurrent && told != ""; {
	case doubted && (v.Message == "" || j.rolledOut):
		v.Message = told // a message that all is well would contradict the status beside it
	case v.Message != "":
	case j.judged:
		v.Message = v.Kind + " is healthy"
	default:
		v.Message = v.Kind + " exists"
	}
	return v
}

func judge(obj *unstructured.Unstructured, in inputs) judgement {
	j := judgement{}
	if skipped(obj) {
		j.ground = GroundSkipped
		return j
	}
	r, found := ruleFor(obj.GroupVersionKind().GroupKind())
	if in.upstreamOnly && !r.managedResource {
		r, found = rule{}, false
	}
	switch {
	case found:
		j.own, j.judged, j.ground = r.ownStatus, r.check != nil, GroundRule
		if r.check != nil {
			j.failure = r.check(obj, in)
		}
		if r.progressing != nil {
			j.progressing, j.progress = r.progressing(obj, in)
			j.rolledOut = !j.progressing
		}
	case in.allKinds:
		j.ground = GroundRule
		j.failure, j.progressing, j.progress = others(obj, in)
	}
	if in.rules != nil {
		if ruling, ok := in.rules.Judge(obj); ok {
			j.overrule(obj, ruling)
		}
	}
	return j
}

// statusOf takes the library's answer for the kinds that kstatus knows, and derives one for those
// that it would call Current for want of a Ready condition. The message is the library's.
func statusOf(obj *unstructured.Unstructured, j judgement, in inputs) (Status, string) {
	if !j.own || obj.GetDeletionTimestamp() != nil {
		return kstatusAt(obj, in.now)
	}
	switch {
	case j.failure != nil && j.failure.Reason == ReasonHealthCheckError:
		return StatusUnknown, ""
	case j.failure != nil && j.failure.Waiting:
		return StatusInProgress, ""
	case j.failure != nil:
		return StatusFailed, ""
	case j.progressing:
		return StatusInProgress, ""
	default:
		return StatusCurrent, ""
	}
}

// skipped reads the annotation as upstream does: True and 1 count, too.
func skipped(obj *unstructured.Unstructured) bool {
	is, err := strconv.ParseBool(obj.GetAnnotations()[annotationSkipHealthCheck])
	return err == nil && is
}
