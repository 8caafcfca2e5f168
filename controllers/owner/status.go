package owner

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/health/condition"
)

// progressInterval is how often progress is written at most (upstream: 5 s).
const progressInterval = 5 * time.Second

// commonStatus is the part of a status that all owners share.
type commonStatus struct {
	Conditions         []gardencorev1beta1.Condition    `json:"conditions,omitempty"`
	LastOperation      *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	LastErrors         []gardencorev1beta1.LastError    `json:"lastErrors,omitempty"`
	ObservedGeneration int64                            `json:"observedGeneration,omitempty"`
}

// ReadStatus reads the live status of an owner, from the cache where it is there.
func ReadStatus(ctx context.Context, c *apply.Cluster, ref apply.Ref) (*unstructured.Unstructured, commonStatus, error) {
	var status commonStatus
	obj, err := c.Get(ctx, ref)
	if err != nil {
		obj, err = c.GetLive(ctx, ref)
	}
	if err != nil {
		return nil, status, c.Explain(ref, "read", err)
	}
	content, _, _ := unstructured.NestedMap(obj.Object, "status")
	if content != nil {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
			return nil, status, fmt.Errorf("status of %s on cluster %s: %w", ref, c.Name(), err)
		}
	}
	return obj, status, nil
}

// statusWriter writes lastOperation of one reconciliation.
type statusWriter struct {
	*Reconciler
	owner      *Owner
	generation int64

	mu        sync.Mutex
	operation gardencorev1beta1.LastOperation
	written   time.Time
	busy      sync.WaitGroup
}

func (r *Reconciler) newStatus(o *Owner) *statusWriter {
	return &statusWriter{Reconciler: r, owner: o}
}

// start says that the operation is being processed.
func (s *statusWriter) start(ctx context.Context) error {
	obj, status, err := ReadStatus(ctx, s.owner.Home, s.owner.Ref)
	if err != nil {
		return err
	}
	s.generation = obj.GetGeneration()
	s.operation = gardencorev1beta1.LastOperation{
		Type: operationType(status.LastOperation), State: gardencorev1beta1.LastOperationStateProcessing,
		Description: "Reconciliation of " + s.owner.Ref.Kind + " " + s.owner.Ref.Name + " initialized.", LastUpdateTime: metav1.NewTime(s.Clock.Now()),
	}
	s.written = s.Clock.Now()
	fields := map[string]any{"lastOperation": s.operation, "gardener": s.Gardener}
	for k, v := range s.identity() {
		fields[k] = v
	}
	return s.patch(ctx, fields)
}

// identity are the status fields that say what an owner is.
func (s *statusWriter) identity() map[string]any {
	in := s.owner.Input
	if in.Owner.Kind != Shoot {
		return nil
	}
	out := map[string]any{"technicalID": in.Owner.ControlPlaneNamespace, "uid": in.Owner.UID}
	if spec, ok := in.Objects["shoot"]["spec"].(map[string]any); ok {
		if seed, ok := spec["seedName"].(string); ok && seed != "" {
			out["seedName"] = seed
		}
	}
	return out
}

// progress notes the state of the flow and writes it now and then.
func (s *statusWriter) progress(e flow.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.operation.Progress = int32(min(e.Progress.Percent, 99))
	s.operation.Description = fmt.Sprintf("%s: %s", e.ID, e.State)
	if s.Clock.Since(s.written) < progressInterval {
		return
	}
	s.written = s.Clock.Now()
	s.operation.LastUpdateTime = metav1.NewTime(s.written)
	operation := s.operation
	s.busy.Add(1)
	go func() {
		defer s.busy.Done()
		ctx, cancel := context.WithTimeout(context.Background(), progressInterval)
		defer cancel()
		// Progress is a courtesy: an error here would hide the ones that matter.
		_ = s.patch(ctx, map[string]any{"lastOperation": operation})
	}()
}

// finish writes the outcome.
func (s *statusWriter) finish(ctx context.Context, cause error) error {
	s.busy.Wait()
	now := metav1.NewTime(s.Clock.Now())
	op := s.operation
	op.LastUpdateTime = now
	fields := map[string]any{"observedGeneration": s.generation}
	if cause == nil {
		op.State, op.Progress = gardencorev1beta1.LastOperationStateSucceeded, 100
		op.Description = s.owner.Ref.Kind + " " + s.owner.Ref.Name + " has been successfully reconciled."
		if kinds[s.owner.Input.Owner.Kind].keepsLastErrors {
			fields["lastErrors"] = nil
		}
	} else {
		text := strings.Join(Problems(cause), "; ")
		op.State, op.Description = gardencorev1beta1.LastOperationStateError, text
		if kinds[s.owner.Input.Owner.Kind].keepsLastErrors {
			fields["lastErrors"] = []gardencorev1beta1.LastError{{Description: text, Codes: condition.Codes(text), LastUpdateTime: &now}}
		}
	}
	fields["lastOperation"] = op
	return s.patch(ctx, fields)
}

func (s *statusWriter) patch(ctx context.Context, fields map[string]any) error {
	_, err := s.owner.Home.MergePatch(ctx, s.owner.Ref, map[string]any{"status": fields}, kinds[s.owner.Input.Owner.Kind].role, "status")
	if err != nil {
		return s.owner.Home.Explain(s.owner.Ref, "write the status", err)
	}
	return nil
}

// Observed gives what the status of an owner says.
func Observed(ctx context.Context, c *apply.Cluster, ref apply.Ref) (*gardencorev1beta1.LastOperation, []gardencorev1beta1.Condition, error) {
	_, status, err := ReadStatus(ctx, c, ref)
	return status.LastOperation, status.Conditions, err
}
