package landscape

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/internal/printable"
)

// objectPatience is how long the Landscape object may take to read: the tree does not wait longer
// for it.
const objectPatience = 10 * time.Second

// ObjectStatus is what the Landscape object, by which an operator syncs the landscape, says of it.
type ObjectStatus struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ready says that its condition Ready is True, and that it is not suspended.
	Ready bool `json:"ready"`
	// Reason and Message are those of the condition Ready; empty while the operator has not written
	// one.
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
	// Held and Waits stand beside the other fields in JSON.
	Held  ObjectHeld  `json:"-"`
	Waits ObjectWaits `json:"-"`
}

// ObjectHeld is which deletions and recreations wait for an approval.
type ObjectHeld struct {
	// Count is how many. At 50 it is at least so many, if InPart.
	Count int `json:"held,omitempty"`
	// InPart says that the object lists as many as it can, and does not say how many there are.
	InPart bool `json:"heldInPart,omitempty"`
	// On is the same by cluster: runtime, virtual, and the seeds on which gardenlets hold
	// something.
	On map[string]int `json:"heldOn,omitempty"`
	// reasons say why objects are held, by cluster and object.
	reasons map[string]string
}

// ObjectWaits is what the landscape waits for; its fields are empty for none.
type ObjectWaits struct {
	// Dependencies says which Landscapes of spec.dependsOn do not exist.
	Dependencies string `json:"dependenciesMissing,omitempty"`
	// Gardenlets says what gardenlets are waited for since the last sync.
	Gardenlets string `json:"gardenlets,omitempty"`
	// Operator says that the operator does not run: nothing is synced. nil while it does.
	Operator *Silence `json:"operatorSilent,omitempty"`
	// Operations says which operations of operations/ wait to be taken up.
	Operations string `json:"operationsWaiting,omitempty"`
}

// MarshalJSON writes the fields of Held and Waits beside the others.
func (o ObjectStatus) MarshalJSON() ([]byte, error) {
	type fields ObjectStatus // without this method
	return json.Marshal(struct {
		fields
		ObjectHeld
		ObjectWaits
	}{fields(o), o.Held, o.Waits})
}

// whyHeld says why an object is held, as far as the object in the cluster lists it; empty if it is
// not. nil holds nothing.
func (o *ObjectStatus) whyHeld(cluster string, ref apply.Ref) string {
	if o == nil {
		return ""
	}
	return o.Held.reasons[cluster+" "+ref.String()]
}

// readObject looks for the Landscape object of this landscape in the runtime cluster: nil where
// there is none that syncs it. An error says why that is not known.
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
	// Of two with one name the operator syncs one only, and says of the other that the name is
	// taken.
	out := slices.MinFunc(found, func(a, b *ObjectStatus) int {
		return cmp.Or(cmp.Compare(taken(a), taken(b)), cmp.Compare(a.Namespace, b.Namespace))
	})
	if out.Waits.Operator = c.operatorSilence(ctx, now); out.Waits.Operator != nil {
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
	held := &out.Held
	for _, h := range l.Status.Held {
		if held.reasons == nil {
			held.reasons = map[string]string{}
		}
		held.reasons[h.Cluster+" "+h.Object] = h.Reason
		if h.Approval != "" {
			held.Count++
			if held.On == nil {
				held.On = map[string]int{}
			}
			held.On[h.Cluster]++
		}
	}
	said := int(l.Status.HeldCount)
	for _, cond := range l.Status.Conditions {
		if cond.Type == landscapev1alpha1.LandscapeOperationsWaiting && cond.Status == gardencorev1beta1.ConditionTrue {
			out.Waits.Operations = cond.Message
		}
		if cond.Type == landscapev1alpha1.LandscapeDependenciesMissing && cond.Status == gardencorev1beta1.ConditionTrue {
			out.Waits.Dependencies = cond.Message
		}
		if cond.Type == landscapev1alpha1.LandscapeGardenletsWorking && cond.Status == gardencorev1beta1.ConditionTrue {
			out.Waits.Gardenlets = cond.Message
		}
		if cond.Type == landscapev1alpha1.LandscapeReady {
			out.Ready, out.Reason, out.Message = cond.Status == gardencorev1beta1.ConditionTrue, cond.Reason, cond.Message
		}
	}
	held.InPart = held.Count >= landscapev1alpha1.MaximumHeld && said == 0
	held.Count = max(held.Count, said)
	if why := l.Spec.SuspendedAt(now); why != nil {
		out.Suspension, out.Ready = why, false
	}
	if h := l.Status.History; len(h) > 0 && h[0].Result == landscapev1alpha1.SyncFailed {
		out.FailedSync = &h[0]
	}
	return out
}

// SuspensionText says by whom, until when and why, to go behind "suspended".
func SuspensionText(s *landscapev1alpha1.Suspension) string {
	until := " until pergola resume"
	if s.Until != nil {
		until = " until " + s.Until.UTC().Format(time.RFC3339)
	}
	return by(s.By) + until + because(s.Reason)
}

// PinText says to which revision, by whom and why, to go behind "pinned".
func PinText(p *landscapev1alpha1.Pin) string {
	return fmt.Sprintf(" to %s%s%s", printable.Line(p.Revision), by(p.By), because(p.Reason))
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
	return ": " + printable.Cut(reason, 400)
}
