// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// The ConfigMap on a seed that names the backup of its last restore.
const (
	markerName = "pergola-restored"
	markerKey  = "backup"
)

// fieldManager is the field manager of restored objects.
const fieldManager = "pergola-recovery"

// creationTimeResolution is longer than the resolution of creation times.
const creationTimeResolution = 1100 * time.Millisecond

// Restore executes the plan, or nothing if a step is refused. It prevents reconciliation until
// everything is restored.
func (r *Restorer) Restore(ctx context.Context) (*Plan, error) {
	p, err := r.Plan(ctx)
	if err != nil {
		return nil, err
	}
	if refused := p.RefusedSteps(); len(refused) > 0 {
		return p, &RefusedError{refused}
	}
	if !p.HasWrites() {
		return p, nil
	}
	for _, name := range p.clusters() {
		if err := r.Converger.AcquireLease(ctx, name); err != nil {
			return p, err
		}
	}
	ctx, cancel := r.Converger.WithLeaseContext(ctx)
	defer cancel()
	// Previous holders may have written until they released the leases.
	if p, err = r.Plan(ctx); err != nil {
		return nil, err
	}
	if refused := p.RefusedSteps(); len(refused) > 0 {
		return p, &RefusedError{refused}
	}
	m := r.Archive.Manifest
	if p.isGardenUnfinished {
		if err := r.Converger.EnsureNamespace(ctx, landscape.Runtime, owner.InventoryNamespace); err != nil {
			return p, err
		}
		if err := r.Converger.BeginGardenRestore(ctx, m.ID, m.Garden.UID); err != nil {
			return p, err
		}
	}
	for _, name := range p.clusters() {
		if err := r.write(ctx, p, name); err != nil {
			return p, err
		}
	}
	if p.isGardenUnfinished {
		if err := r.Converger.FinishGardenRestore(ctx, m.ID, m.Garden.UID, m.Garden.Credentials); err != nil {
			return p, err
		}
		r.reportStep(p.Steps[0])
	}
	return p, nil
}

func (r *Restorer) reportStep(s Step) {
	if r.OnStep != nil {
		r.OnStep(s)
	}
}

// clusters returns the clusters with objects to write, the runtime cluster first.
func (p *Plan) clusters() []string {
	all := map[string]bool{}
	for _, s := range p.Steps {
		if s.Action == ActionCreate || s.Action == ActionComplete {
			all[s.Cluster] = true
		}
	}
	return clusterNames(all)
}

// write creates the objects of a cluster. The secrets manager uses the newest Secret of a request,
// so they are created in the original order and not within the same second.
func (r *Restorer) write(ctx context.Context, p *Plan, cluster string) error {
	l, err := newLister(r.Converger.Cluster(cluster))
	if err != nil {
		return err
	}
	if cluster != landscape.Runtime {
		if err := r.writeMarker(ctx, l); err != nil {
			return err
		}
	}
	steps := slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool {
		return s.Cluster != cluster || s.entry == nil || s.Action != ActionCreate && s.Action != ActionComplete
	})
	made := map[string]bool{}
	for i, age := range creationPasses(steps) {
		if i > 0 {
			if err := sleep(ctx, creationTimeResolution); err != nil {
				return err
			}
		}
		for _, s := range age {
			if namespace := s.Namespace; !made[namespace] {
				if err := r.Converger.EnsureNamespace(ctx, cluster, namespace); err != nil {
					return err
				}
				made[namespace] = true
			}
			if err := l.write(ctx, s); err != nil {
				return err
			}
			r.reportStep(s)
		}
	}
	return nil
}

// creationPasses groups objects into passes, so that those of one request are created one after the
// other.
func creationPasses(steps []Step) [][]Step {
	slices.SortStableFunc(steps, func(a, b Step) int { return a.entry.object.Created.Compare(b.entry.object.Created) })
	seen := map[string]int{}
	var out [][]Step
	for _, s := range steps {
		n := 0
		if s.entry.Item.Origin == OriginGenerated {
			key := requestOf(s.Namespace, s.entry.object.Labels)
			n = seen[key]
			seen[key]++
		}
		if n == len(out) {
			out = append(out, nil)
		}
		out[n] = append(out[n], s)
	}
	return out
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeMarker records on a seed which backup is being restored, so that an interrupted restore can
// continue.
func (r *Restorer) writeMarker(ctx context.Context, l *lister) error {
	if err := r.Converger.EnsureNamespace(ctx, l.cluster.Name(), owner.InventoryNamespace); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": kindConfigMap, "metadata": map[string]any{"name": markerName, "namespace": owner.InventoryNamespace},
		"data": map[string]any{markerKey: r.Archive.Manifest.ID}})
	if err != nil {
		return fmt.Errorf("encoding ConfigMap %s: %w", markerName, err)
	}
	_, err = l.client.CoreV1().ConfigMaps(owner.InventoryNamespace).Patch(ctx, markerName, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: fieldManager, Force: ptr.To(true)})
	if err != nil {
		return l.cluster.Explain(apply.Ref{APIVersion: "v1", Kind: kindConfigMap, Namespace: owner.InventoryNamespace, Name: markerName}, "write", err)
	}
	return nil
}

// write creates or completes an object. An error of the server may quote values, so it is filtered.
func (l *lister) write(ctx context.Context, s Step) error {
	var err error
	switch {
	case s.Kind == kindSecret && s.Action == ActionCreate:
		_, err = l.client.CoreV1().Secrets(s.Namespace).Create(ctx, s.entry.asSecret(), metav1.CreateOptions{FieldManager: fieldManager})
	case s.Kind == kindConfigMap && s.Action == ActionCreate:
		_, err = l.client.CoreV1().ConfigMaps(s.Namespace).Create(ctx, s.entry.asConfigMap(), metav1.CreateOptions{FieldManager: fieldManager})
	case s.Kind == kindConfigMap:
		err = l.completeRecords(ctx, s)
	default:
		return fmt.Errorf("%s cannot be restored: it is neither a Secret nor a ConfigMap", s)
	}
	if err == nil {
		return nil
	}
	ref := apply.Ref{APIVersion: "v1", Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
	return withoutQuotedValues(l.cluster.Explain(ref, "restore", err), s.entry)
}

// completeRecords adds missing records.
func (l *lister) completeRecords(ctx context.Context, s Step) error {
	live, err := l.client.CoreV1().ConfigMaps(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	missing := s.entry.asConfigMap().Data
	maps.DeleteFunc(missing, func(key, _ string) bool { _, has := live.Data[key]; return has })
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": live.ResourceVersion}, "data": missing})
	if err != nil {
		return errors.New("encoding it failed")
	}
	_, err = l.client.CoreV1().ConfigMaps(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}

func (e *Entry) objectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: e.Item.Namespace, Name: e.Item.Name, Labels: e.object.Labels, Annotations: e.object.Annotations}
}

func (e *Entry) asSecret() *corev1.Secret {
	out := &corev1.Secret{ObjectMeta: e.objectMeta(), Type: corev1.SecretType(e.object.Type), Data: e.object.Data}
	if e.object.Immutable {
		out.Immutable = ptr.To(true)
	}
	return out
}

func (e *Entry) asConfigMap() *corev1.ConfigMap {
	out := &corev1.ConfigMap{ObjectMeta: e.objectMeta(), Data: map[string]string{}, BinaryData: e.object.Binary}
	for key, raw := range e.object.Data {
		out.Data[key] = string(raw)
	}
	if e.object.Immutable {
		out.Immutable = ptr.To(true)
	}
	return out
}

// withoutQuotedValues replaces the text of an error that quotes a value.
func withoutQuotedValues(err error, e *Entry) error {
	for _, raw := range e.object.Data {
		if len(raw) >= 8 && strings.Contains(err.Error(), string(raw)) {
			reason := apierrors.ReasonForError(err)
			return fmt.Errorf("restore %s: the server rejects it (%s); its message is omitted, because it quotes a value", e, reason)
		}
	}
	return err
}
