// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// The ConfigMap in namespace garden of each cluster that lists the stopped controllers and their
// previous state. It is written first, so that an interrupted run can be continued and undone.
const (
	recordName = "pergola-adoption"
	recordKey  = "stopped.json"
)

// adoptionRecord is its content.
type adoptionRecord struct {
	Landscape string              `json:"landscape"`
	Stopped   []stoppedController `json:"stopped"`
}

// stoppedController is one controller.
type stoppedController struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Replicas  int64     `json:"replicas"`
	At        time.Time `json:"at"`
	// IgnoredManagedResource is the ManagedResource, NAMESPACE/NAME, that was annotated to be
	// ignored.
	IgnoredManagedResource string `json:"ignored,omitempty"`
	// Webhooks are the previous configurations of its webhooks, by cluster.
	Webhooks []webhook `json:"webhooks,omitempty"`
}

type webhook struct {
	Cluster string         `json:"cluster"`
	Object  map[string]any `json:"object"`
}

func (r *adoptionRecord) entryOf(namespace, name string) *stoppedController {
	i := slices.IndexFunc(r.Stopped, func(s stoppedController) bool { return s.Namespace == namespace && s.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Stopped[i]
}

func recordRef() apply.Ref {
	return apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: owner.InventoryNamespace, Name: recordName}
}

// readRecord reads which controllers are stopped on a cluster.
func (a *Adopter) readRecord(ctx context.Context, cluster string) (*adoptionRecord, error) {
	c := a.Converger.Cluster(cluster)
	live, err := readLive(ctx, c, recordRef())
	if err != nil {
		return nil, err
	}
	out := &adoptionRecord{Landscape: a.Landscape}
	if live == nil {
		return out, nil
	}
	if err := json.Unmarshal([]byte(stringField(live, "data", recordKey)), out); err != nil {
		return nil, fmt.Errorf("cluster %s: %s cannot be read: %w", cluster, recordRef(), err)
	}
	if out.Landscape != a.Landscape {
		return nil, fmt.Errorf("cluster %s: %s belongs to landscape %q, not to %q", cluster, recordRef(), out.Landscape, a.Landscape)
	}
	return out, nil
}

// writeRecord replaces the record, or deletes an empty one.
func (a *Adopter) writeRecord(ctx context.Context, cluster string, r *adoptionRecord) error {
	c := a.Converger.Cluster(cluster)
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", cluster, err)
	}
	maps := client.CoreV1().ConfigMaps(owner.InventoryNamespace)
	if len(r.Stopped) == 0 {
		if err := maps.Delete(ctx, recordName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return c.Explain(recordRef(), "delete", err)
		}
		return nil
	}
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("recording the stopped controllers: %w", err)
	}
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: recordName, Namespace: owner.InventoryNamespace}, Data: map[string]string{recordKey: string(body)}}
	_, err = maps.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: conventions.AdoptionManager})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, wanted, metav1.CreateOptions{FieldManager: conventions.AdoptionManager})
	}
	if err != nil {
		return c.Explain(recordRef(), "write", err)
	}
	return nil
}

// isStopped reports whether a stopped controller still has to be started.
func (a *Adopter) isStopped(ctx context.Context, found []Controller) (bool, error) {
	for _, cluster := range clustersOf(found) {
		r, err := a.readRecord(ctx, cluster)
		if err != nil || len(r.Stopped) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// clustersOf returns the clusters of controllers, each once, in their order.
func clustersOf(found []Controller) []string {
	var out []string
	for _, c := range found {
		if !slices.Contains(out, c.Cluster) {
			out = append(out, c.Cluster)
		}
	}
	return out
}
