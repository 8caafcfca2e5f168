// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Status is the kstatus of an object.
type Status string

const (
	// StatusCurrent means the object matches its specification.
	StatusCurrent Status = "Current"
	// StatusInProgress means the object is progressing towards its specification.
	StatusInProgress Status = "InProgress"
	// StatusFailed means the object will not match its specification without a change.
	StatusFailed Status = "Failed"
	// StatusTerminating means the object is being deleted.
	StatusTerminating Status = "Terminating"
	// StatusNotFound means the object does not exist.
	StatusNotFound Status = "NotFound"
	// StatusUnknown means the state could not be determined.
	StatusUnknown Status = "Unknown"
)

// annotationSkipHealthCheck disables all checks of an object (pkg/apis/resources/v1alpha1:
// SkipHealthCheck).
const annotationSkipHealthCheck = "resources.gardener.cloud/skip-health-check"

// Basis is why an object is healthy.
type Basis int

const (
	// BasisExistence means that no rule applies to the object.
	BasisExistence Basis = iota
	// BasisRule means that a rule judged the object.
	BasisRule
	// BasisSkipped means that an annotation of the object disables its checks.
	BasisSkipped
)

// Verdict is the health of one object.
type Verdict struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Healthy reports whether the object is healthy by Gardener's rule of the kind; true for kinds
	// without a rule, but see JudgeAllKinds.
	Healthy bool `json:"healthy"`
	// Progressing means a rollout is in progress. An object can be healthy and progressing.
	Progressing bool `json:"progressing"`
	// Status is the kstatus.
	Status Status `json:"status"`
	// Reason is the reason in CamelCase as in the conditions of a ManagedResource, for example
	// DeploymentUnhealthy or DeploymentProgressing. It is empty when the object is healthy and not
	// progressing.
	Reason string `json:"reason"`
	// Message is the message for a person, with the cause if related objects were given.
	Message string `json:"message"`
	// Codes are Gardener's error codes (ERR_…) that the object reports or its cause matches.
	Codes []string `json:"codes,omitempty"`
	// Cause is found in the related objects; see WithRelatedObjects. The message includes it.
	Cause *Cause `json:"cause,omitempty"`
	// Basis is the ground of a healthy object, for people.
	Basis Basis `json:"-"`
}

// Option adds an input to Check beyond the object.
type Option func(*inputs)

type inputs struct {
	related                  RelatedObjects
	hasPods                  bool
	now                      time.Time
	gardener                 *Gardener
	managedResourceKindsOnly bool
	judgesAllKinds           bool
	rules                    Rules
}

// WithPods passes the pods of the object's namespace, or at least all that the object selects. A
// Deployment then is progressing until old pods no longer exist, and messages include the cause
// found in a pod.
func WithPods(pods []corev1.Pod) Option {
	return func(in *inputs) { in.related.Pods, in.hasPods = pods, true }
}

// WithRelatedObjects passes the related objects, so that the verdict has a cause. Pods that are not
// nil have the effect of WithPods.
func WithRelatedObjects(around RelatedObjects) Option {
	return func(in *inputs) { in.related, in.hasPods = around, around.Pods != nil }
}

// WithTime passes the time of the judgement. With it, an unschedulable pod is InProgress in its
// first 15 seconds, then Failed; without a time it stays InProgress. A Deployment counts as
// crashing only with a time and its pods.
func WithTime(now time.Time) Option { return func(in *inputs) { in.now = now } }

// WithGardener passes the instance that should have reconciled a Seed. Without it any instance is
// accepted.
func WithGardener(identity Gardener) Option {
	return func(in *inputs) { in.gardener = &identity }
}

// OnlyManagedResourceKinds limits the rules to the kinds that upstream's resource manager judges
// (pkg/resourcemanager/controller/health/utils); all others are healthy if they exist.
func OnlyManagedResourceKinds() Option {
	return func(in *inputs) { in.managedResourceKindsOnly = true }
}

// JudgeAllKinds also judges kinds without a rule of Gardener, by kstatus. They are unhealthy if
// they cannot recover without a change (Stalled is True, a claim has lost its volume). They are
// progressing while not ready (generation not observed, Ready not True, claim not bound) or being
// deleted. Without the option they are healthy if they exist, as in upstream; only status and
// message say more.
func JudgeAllKinds() Option { return func(in *inputs) { in.judgesAllKinds = true } }

// NotFound is the verdict on a required object that does not exist.
func NotFound(gvk schema.GroupVersionKind, namespace, name string) Verdict {
	return Verdict{
		Kind: gvk.Kind, Namespace: namespace, Name: name,
		Status: StatusNotFound, Reason: gvk.Kind + "Missing", Message: gvk.Kind + " does not exist",
	}
}

// judgement is the result of the rules, before messages are made.
type judgement struct {
	failure     *Failure
	progressing bool
	// progressMessage is the message if the object is not unhealthy.
	progressMessage string
	// isRolledOut means that progress only says that no rollout is in progress.
	isRolledOut bool
	// isChecked means that more than existence was checked.
	isChecked bool
	// hasOwnStatus means that the status follows from the judgement instead of kstatus.
	hasOwnStatus bool
	// ground is why a healthy object is healthy.
	ground Basis
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
		Healthy: j.failure == nil, Progressing: j.progressing, Message: j.progressMessage, Basis: j.ground,
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
		if cause, ok := FindCause(obj, in.related); ok {
			v.Cause, v.Message, v.Codes = &cause, joinMessages(v.Message, cause.String()), mergeCodes(v.Codes, cause.Message)
		}
	}

	var told string
	v.Status, told = verdictStatus(obj, j, in)
	switch doubted := v.Healthy && !v.Progressing && v.Status != StatusCurrent && told != ""; {
	case doubted && (v.Message == "" || j.isRolledOut):
		v.Message = told // a message of success would contradict the status
	case v.Message != "":
	case j.isChecked:
		v.Message = v.Kind + " is healthy"
	default:
		v.Message = v.Kind + " exists"
	}
	return v
}

func judge(obj *unstructured.Unstructured, in inputs) judgement {
	j := judgement{}
	if isHealthCheckSkipped(obj) {
		j.ground = BasisSkipped
		return j
	}
	r, found := ruleFor(obj.GroupVersionKind().GroupKind())
	if in.managedResourceKindsOnly && !r.isManagedResourceKind {
		r, found = rule{}, false
	}
	switch {
	case found:
		j.hasOwnStatus, j.isChecked, j.ground = r.derivesStatus, r.check != nil, BasisRule
		if r.check != nil {
			j.failure = r.check(obj, in)
		}
		if r.checkProgress != nil {
			j.progressing, j.progressMessage = r.checkProgress(obj, in)
			j.isRolledOut = !j.progressing
		}
	case in.judgesAllKinds:
		j.ground = BasisRule
		j.failure, j.progressing, j.progressMessage = judgeOtherKind(obj, in)
	}
	if in.rules != nil {
		if ruling, ok := in.rules.Judge(obj); ok {
			j.applyRuling(obj, ruling)
		}
	}
	return j
}

// verdictStatus returns the library's status for kinds that kstatus knows. It derives one for kinds
// that are Current there only because they have no Ready condition. The message is the library's.
func verdictStatus(obj *unstructured.Unstructured, j judgement, in inputs) (Status, string) {
	if !j.hasOwnStatus || obj.GetDeletionTimestamp() != nil {
		return kstatusWithTime(obj, in.now)
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

// isHealthCheckSkipped reads the annotation as upstream does, which also accepts True and 1.
func isHealthCheckSkipped(obj *unstructured.Unstructured) bool {
	is, err := strconv.ParseBool(obj.GetAnnotations()[annotationSkipHealthCheck])
	return err == nil && is
}
