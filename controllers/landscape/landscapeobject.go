// SPDX-License-Identifier: Apache-2.0

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

// objectReadTimeout limits the time to read the Landscape object for the status.
const objectReadTimeout = 10 * time.Second

// ObjectStatus is the status of the Landscape object with which an operator syncs the landscape.
type ObjectStatus struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ready means that its condition Ready is True, and that it is not suspended.
	Ready bool `json:"ready"`
	// Reason and Message are the reason and the message of the condition Ready; empty before the
	// operator has written it.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Suspension has reason, author and end of a suspension; it is nil if it is not suspended.
	Suspension *landscapev1alpha1.Suspension `json:"suspension,omitempty"`
	// Pin is the revision that it is pinned to.
	Pin *landscapev1alpha1.Pin `json:"pin,omitempty"`
	// Revision is the last completely applied one, as <ref>@<commit>; it is empty if there is none.
	Revision string `json:"revision,omitempty"`
	// FailedSync is the last sync, if it failed.
	FailedSync *landscapev1alpha1.SyncRecord `json:"failedSync,omitempty"`
	// Held and Waits are inlined in JSON.
	Held          HeldCounts    `json:"-"`
	PendingCauses PendingCauses `json:"-"`
}

// HeldCounts contains the deletions and recreations that wait for an approval.
type HeldCounts struct {
	// Count is their number; with IsMinimum it is a minimum.
	Count int `json:"held,omitempty"`
	// IsMinimum means that the list in the object is full, and that the object has no total.
	IsMinimum bool `json:"heldInPart,omitempty"`
	// ByCluster is the number by cluster: runtime, virtual, and the seeds.
	ByCluster map[string]int `json:"heldOn,omitempty"`
	// reasons are the reasons by cluster and object.
	reasons map[string]string
}

// PendingCauses contains the causes for which the landscape waits; empty fields mean none.
type PendingCauses struct {
	// Dependencies names the missing Landscapes of spec.dependsOn.
	Dependencies string `json:"dependenciesMissing,omitempty"`
	// Gardenlets describes the gardenlets that have not finished since the last sync.
	Gardenlets string `json:"gardenlets,omitempty"`
	// Operator means that no operator runs and nothing is synced; it is nil while one does.
	Operator *StaleRole `json:"operatorSilent,omitempty"`
	// Operations describes the operations of operations/ that have not started.
	Operations string `json:"operationsWaiting,omitempty"`
}

// MarshalJSON inlines Held and Waits.
func (o ObjectStatus) MarshalJSON() ([]byte, error) {
	type fields ObjectStatus // without this method
	return json.Marshal(struct {
		fields
		HeldCounts
		PendingCauses
	}{fields(o), o.Held, o.PendingCauses})
}

// holdReason returns why an object is held, according to the Landscape object, or "" if it is not,
// or o is nil.
func (o *ObjectStatus) holdReason(cluster string, ref apply.Ref) string {
	if o == nil {
		return ""
	}
	return o.Held.reasons[cluster+" "+ref.String()]
}

// readLandscapeObject returns the status of the Landscape object in the runtime cluster, or nil if
// no object syncs this landscape.
func (c *Converger) readLandscapeObject(ctx context.Context, now time.Time) (*ObjectStatus, error) {
	cluster := c.connections.clusters[Runtime]
	if cluster == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, objectReadTimeout)
	defer cancel()
	resource := cluster.Dynamic().Resource(landscapev1alpha1.SchemeGroupVersion.WithResource("landscapes"))
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", c.landscape.Config.Name).String()}
	list, err := resource.List(ctx, only)
	if apierrors.IsForbidden(err) {
		list, err = resource.Namespace(gardencorev1beta1.GardenNamespace).List(ctx, only)
	}
	switch {
	case apierrors.IsNotFound(err): // the kind does not exist
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
	// The operator syncs only one of two objects with the same name, and reports NameTaken for the
	// other.
	out := slices.MinFunc(found, func(a, b *ObjectStatus) int {
		return cmp.Or(cmp.Compare(nameConflictRank(a), nameConflictRank(b)), cmp.Compare(a.Namespace, b.Namespace))
	})
	if out.PendingCauses.Operator = c.readStaleOperator(ctx, now); out.PendingCauses.Operator != nil {
		out.Ready = false // its last status is outdated
	}
	return out, nil
}

func nameConflictRank(o *ObjectStatus) int {
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
			if held.ByCluster == nil {
				held.ByCluster = map[string]int{}
			}
			held.ByCluster[h.Cluster]++
		}
	}
	said := int(l.Status.HeldCount)
	for _, cond := range l.Status.Conditions {
		if cond.Type == landscapev1alpha1.LandscapeOperationsWaiting && cond.Status == gardencorev1beta1.ConditionTrue {
			out.PendingCauses.Operations = cond.Message
		}
		if cond.Type == landscapev1alpha1.LandscapeDependenciesMissing && cond.Status == gardencorev1beta1.ConditionTrue {
			out.PendingCauses.Dependencies = cond.Message
		}
		if cond.Type == landscapev1alpha1.LandscapeGardenletsWorking && cond.Status == gardencorev1beta1.ConditionTrue {
			out.PendingCauses.Gardenlets = cond.Message
		}
		if cond.Type == landscapev1alpha1.LandscapeReady {
			out.Ready, out.Reason, out.Message = cond.Status == gardencorev1beta1.ConditionTrue, cond.Reason, cond.Message
		}
	}
	held.IsMinimum = held.Count >= landscapev1alpha1.MaxHeldDeletions && said == 0
	held.Count = max(held.Count, said)
	if why := l.Spec.SuspensionAt(now); why != nil {
		out.Suspension, out.Ready = why, false
	}
	if h := l.Status.History; len(h) > 0 && h[0].Result == landscapev1alpha1.SyncFailed {
		out.FailedSync = &h[0]
	}
	return out
}

// SuspensionText returns author, end and reason, to follow "suspended".
func SuspensionText(s *landscapev1alpha1.Suspension) string {
	until := " until pergola resume"
	if s.Until != nil {
		until = " until " + s.Until.UTC().Format(time.RFC3339)
	}
	return authorText(s.By) + until + reasonText(s.Reason)
}

// PinText returns revision, author and reason, to follow "pinned".
func PinText(p *landscapev1alpha1.Pin) string {
	return fmt.Sprintf(" to %s%s%s", printable.Line(p.Revision), authorText(p.By), reasonText(p.Reason))
}

func authorText(name string) string {
	if name == "" {
		return ""
	}
	return " by " + printable.Line(name)
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + printable.Truncate(reason, 400)
}
