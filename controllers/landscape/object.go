package landscape

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/internal/printable"
)

// objectPatience is how long the Landscape object may take to read: the tree does not wait longer for it.
const objectPatience = 10 * time.Second

// ObjectStatus is what the Landscape object, by which an operator syncs the landscape, says of it.
type ObjectStatus struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ready says that its condition Ready is True, and that it is not suspended.
	Ready bool `json:"ready"`
	// Reason and Message are those of the condition Ready; empty while the operator has not written one.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Suspension is why, by whom and until when it is suspended; nil when it is not.
	Suspension *landscapev1alpha1.Suspension `json:"suspension,omitempty"`
	// Pin is what it is pinned to.
	Pin *landscapev1alpha1.Pin `json:"pin,omitempty"`
	// Revision was applied completely last, as <ref>@<commit>; empty for none.
	Revision string `json:"revision,omitempty"`
	// FailedSync is the last sync, if it failed.
	FailedSync *landscapev1alpha1.SyncRecord `json:"failedSync,omitempty"`
	// Held is how many deletions and recreations wait for an approval. At 50 it is at least so many, if HeldInPart.
	Held int `json:"held,omitempty"`
	// HeldInPart says that the object lists as many as it can, and does not say how many there are.
	HeldInPart bool `json:"heldInPart,omitempty"`
	// HeldOn is the same by cluster: runtime, virtual, and the seeds on which gardenlets hold something.
	HeldOn map[string]int `json:"heldOn,omitempty"`
	// DependenciesMissing says which Landscapes of spec.dependsOn do not exist; empty for none.
	DependenciesMissing string `json:"dependenciesMissing,omitempty"`
	// Gardenlets says what gardenlets are waited for since the last sync; empty for none.
	Gardenlets string `json:"gardenlets,omitempty"`
	// Silence says that the operator does not run: nothing is synced. nil while it does.
	Silence *Silence `json:"operatorSilent,omitempty"`
	// OperationsWaiting says which operations of operations/ wait to be taken up; empty for none.
	OperationsWaiting string `json:"operationsWaiting,omitempty"`
	// held says why objects are held, by cluster and object.
	held map[string]string
}

// whyHeld says why an object is held, as far as the object in the cluster lists it; empty if it is not. nil holds nothing.
func (o *ObjectStatus) whyHeld(cluster string, ref apply.Ref) string {
	if o == nil {
		return ""
	}
	return o.held[cluster+" "+ref.String()]
}

// readObject looks for the Landscape object of this landscape in the runtime cluster: nil where there is none that syncs it. An
// error says why that is not known.
func (c *Converger) readObject(ctx context.Context, now time.Time) (*ObjectStatus, error) {
	cluster := c.links.clusters[Runtime]
	if cluster == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, objectPatience)
	defer cancel()
	resource := cluster.Dynamic().Resource(landscapev1alpha1.SchemeGroupVersion.WithResource("landscapes"))
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", c.landscape.Config.Name).String()}
	list, err := resource.List(ctx, only)
	if apierrors.IsForbidden(err) {
		list, err = resource.Namespace(gardencorev1beta1.GardenNamespace).List(ctx, only)
	}
	switch {
	case apierrors.IsNotFound(err): // no such kind: nobody syncs it
		return nil, nil
	case err != nil:
		return nil, cluster.Explain(apply.Ref{APIVersion: landscapev1alpha1.SchemeGroupVersion.String(), Kind: "Landscape", Name: c.landscape.Config.Name}, "read", err)
	}
	var found []*ObjectStatus
	for _, item := range list.Items {
		l := &landscapev1alpha1.Landscape{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, l); err != nil {
			return nil, fmt.Errorf("reading Landscape %s/%s: %w", item.GetNamespace(), item.GetName(), err)
		}
		if l.Spec.Source != nil {
			found = append(found, objectStatus(l, now))
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	// Of two with one name the operator syncs one only, and says of the other that the name is taken.
	out := slices.MinFunc(found, func(a, b *ObjectStatus) int {
		return cmp.Or(cmp.Compare(taken(a), taken(b)), cmp.Compare(a.Namespace, b.Namespace))
	})
	if out.Silence = c.operatorSilence(ctx, now); out.Silence != nil {
		out.Ready = false // whatever it said last
	}
	return out, nil
}

func taken(o *ObjectStatus) int {
	if o.Reason == landscapev1alpha1.ReasonNameTaken {
		return 1
	}
	return 0
}

func objectStatus(l *landscapev1alpha1.Landscape, now time.Time) *ObjectStatus {
	out := &ObjectStatus{Namespace: l.Namespace, Name: l.Name, Pin: l.Spec.Pin, Revision: l.Status.LastAppliedRevision}
	for _, h := range l.Status.Held {
		if out.held == nil {
			out.held = map[string]string{}
		}
		out.held[h.Cluster+" "+h.Object] = h.Reason
		if h.Approval != "" {
			out.Held++
			if out.HeldOn == nil {
				out.HeldOn = map[string]int{}
			}
			out.HeldOn[h.Cluster]++
		}
	}
	said := int(l.Status.HeldCount)
	for _, cond := range l.Status.Conditions {
		if cond.Type == landscapev1alpha1.LandscapeOperationsWaiting && cond.Status == gardencorev1beta1.ConditionTrue {
			out.OperationsWaiting = cond.Message
		}
		if cond.Type == landscapev1alpha1.LandscapeDependenciesMissing && cond.Status == gardencorev1beta1.ConditionTrue {
			out.DependenciesMissing = cond.Message
		}
		if cond.Type == landscapev1alpha1.LandscapeGardenletsWorking && cond.Status == gardencorev1beta1.ConditionTrue {
			out.Gardenlets = cond.Message
		}
		if cond.Type == landscapev1alpha1.LandscapeReady {
			out.Ready, out.Reason, out.Message = cond.Status == gardencorev1beta1.ConditionTrue, cond.Reason, cond.Message
		}
	}
	out.HeldInPart = out.Held >= landscapev1alpha1.MaximumHeld && said == 0
	out.Held = max(out.Held, said)
	if why := l.Spec.SuspendedAt(now); why != nil {
		out.Suspension, out.Ready = why, false
	}
	if h := l.Status.History; len(h) > 0 && h[0].Result == landscapev1alpha1.SyncFailed {
		out.FailedSync = &h[0]
	}
	return out
}

// object prints what the Landscape object says: what keeps the landscape from being what Git says stands above the tree.
func (v view) object(w io.Writer) {
	if v.status.ObjectUnknown != "" {
		fmt.Fprintf(w, "  %s whether a Landscape of the runtime cluster is suspended or pinned is not known: %s\n", v.mark(gardencorev1beta1.ConditionUnknown), oneLine(v.status.ObjectUnknown))
	}
	o := v.status.Object
	if o == nil {
		return
	}
	applied := "nothing was applied completely yet"
	if o.Revision != "" {
		applied = printable.Line(ShortRevision(o.Revision)) + " is applied"
	}
	fmt.Fprintf(w, "Synced from Git by Landscape %s: %s\n", printable.Line(o.Namespace+"/"+o.Name), applied)
	for _, line := range v.objectLines(o) {
		fmt.Fprintln(w, "  "+line)
	}
}

func (v view) objectLines(o *ObjectStatus) []string {
	var out []string
	no, yellow := v.mark(gardencorev1beta1.ConditionFalse)+" ", color.FgYellow
	if o.Silence != nil {
		out = append(out, no+"no operator runs, and nothing is synced: "+printable.Line(o.Silence.Text(v.status.At)), "  "+StartOperator("kubectl"+v.status.reach))
	}
	if o.Suspension != nil {
		out = append(out, v.paint("SUSPENDED", yellow)+SuspensionText(o.Suspension))
	}
	if p := o.Pin; p != nil {
		out = append(out, v.paint("PINNED", yellow)+fmt.Sprintf(" to %s%s%s", printable.Line(p.Revision), by(p.By), because(p.Reason)))
	}
	if f := o.FailedSync; f != nil {
		at := f.StartTime
		if f.EndTime != nil {
			at = *f.EndTime
		}
		out = append(out, no+fmt.Sprintf("the last sync failed %s, of %s: %s", v.ago(at.Time), printable.Line(ShortRevision(f.Revision)), wholeLine(o.failure())))
	}
	switch {
	case o.Reason == landscapev1alpha1.ReasonWaiting && o.Suspension == nil:
		mark := no
		if o.Ready {
			mark = v.mark(gardencorev1beta1.ConditionProgressing) + " "
		}
		out = append(out, mark+"a sync waits: "+wholeLine(o.Message))
	case o.Ready, o.Silence != nil, o.Suspension != nil, o.FailedSync != nil && o.Reason == landscapev1alpha1.ReasonApplyFailed:
	case o.Reason == "":
		out = append(out, no+"the operator has not looked at it yet")
	case o.Reason == landscapev1alpha1.ReasonSuspended:
		out = append(out, no+"it is not suspended any more, and the operator has not gone on yet")
	default:
		out = append(out, no+printable.Line(o.Reason)+": "+wholeLine(o.Message))
	}
	if o.OperationsWaiting != "" {
		out = append(out, v.mark(gardencorev1beta1.ConditionProgressing)+" "+wholeLine(o.OperationsWaiting))
	}
	if o.DependenciesMissing != "" {
		out = append(out, v.mark(gardencorev1beta1.ConditionProgressing)+" "+wholeLine(o.DependenciesMissing))
	}
	if o.Gardenlets != "" {
		out = append(out, v.mark(gardencorev1beta1.ConditionProgressing)+" "+wholeLine(o.Gardenlets))
	}
	if o.Held > 0 {
		count := fmt.Sprintf("%d held deletions and recreations wait", o.Held)
		switch {
		case o.Held == 1:
			count = "1 held deletion or recreation waits"
		case o.HeldInPart:
			count = "at least " + count
		}
		out = append(out, v.mark(gardencorev1beta1.ConditionProgressing)+fmt.Sprintf(" %s for approval: pergola history %s%s", count, printable.Line(o.Namespace+"/"+o.Name), v.status.reach))
	}
	return out
}

// failure is why the last sync failed: the condition has all of it with what to do, and the history its beginning.
func (o *ObjectStatus) failure() string {
	if o.Reason == landscapev1alpha1.ReasonApplyFailed {
		return o.Message
	}
	return o.FailedSync.Message
}

// SuspensionText says by whom, until when and why, to go behind "suspended".
func SuspensionText(s *landscapev1alpha1.Suspension) string {
	until := " until pergola resume"
	if s.Until != nil {
		until = " until " + s.Until.UTC().Format(time.RFC3339)
	}
	return by(s.By) + until + because(s.Reason)
}

func by(name string) string {
	if name == "" {
		return ""
	}
	return " by " + printable.Line(name)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + oneLine(reason)
}

// ShortRevision is a revision with as many digits as tell it from others: main@0a1b2c3d4e, latest@sha256:0a1b2c3d4e5f.
func ShortRevision(revision string) string {
	name, digest, named := strings.Cut(revision, "@")
	if !named {
		name, digest = "", revision
	} else {
		name += "@"
	}
	kind, digits, found := strings.Cut(digest, ":")
	switch {
	case !found:
		return name + shortDigits(digest, 10)
	case kind == "sha1":
		return name + shortDigits(digits, 10)
	}
	return name + kind + ":" + shortDigits(digits, 12)
}

func shortDigits(s string, n int) string { return s[:min(len(s), n)] }
