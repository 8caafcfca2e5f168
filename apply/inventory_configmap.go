// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	inventoryManager = "pergola-inventory"
	inventoryKey     = "entries.json" // one JSON entry per line, for readable diffs
	// inventoryGzip replaces inventoryKey when the text approaches the size limit of an object
	inventoryGzip    = "entries.json.gz"
	inventoryPlain   = 512 << 10
	maxInventorySize = 32 << 20 // unpacked limit, against a crafted object
)

// configMapInventory stores entries in a ConfigMap with the managed-by label, so that the live
// cache serves its reads.
type configMapInventory struct {
	cluster *Cluster
	ref     Ref
	labels  map[string]string
	// version is the resourceVersion read last; it detects a second writer of an existing
	// ConfigMap. An apply with a version would recreate a deleted ConfigMap; uid prevents that.
	version string
	uid     types.UID
}

// NewConfigMapInventory returns an inventory in a ConfigMap, and creates the namespace if it is
// missing. The labels are added to those that the cluster's live cache selects by.
func NewConfigMapInventory(c *Cluster, namespace, name string, labels map[string]string) Inventory {
	return &configMapInventory{cluster: c, labels: labels,
		ref: Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: name}}
}

func (i *configMapInventory) Load(ctx context.Context) ([]Entry, error) {
	w, err := i.cluster.readyResource(ctx, i.ref.GVK())
	if err != nil {
		return nil, fmt.Errorf("reading inventory %s: %w", i.ref, err)
	}
	i.version, i.uid = "", ""
	o := w.get(nsName{i.ref.Namespace, i.ref.Name})
	if o == nil {
		return nil, nil
	}
	i.version, i.uid = o.GetResourceVersion(), o.GetUID()
	entries, err := decodeEntries(o)
	if err != nil {
		return nil, &ObjectError{Cluster: i.cluster.name, Object: i.ref, Op: "read the inventory", Reason: ReasonInvalid, Message: err.Error(), Err: err,
			Hint: "restore this ConfigMap, or delete it: the next apply rebuilds it from the origin annotations of the objects"}
	}
	return entries, nil
}

func (i *configMapInventory) Save(ctx context.Context, entries []Entry) error {
	o, err := i.object(entries)
	if err != nil {
		return fmt.Errorf("writing inventory %s: %w", i.ref, err)
	}
	answer, _, err := i.cluster.patchApply(ctx, o, patchOptions{manager: inventoryManager, force: true, uid: i.uid})
	if isNamespaceMissing(err) {
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": i.ref.Namespace}}}
		if _, _, err = i.cluster.patchApply(ctx, ns, patchOptions{manager: inventoryManager}); err == nil {
			answer, _, err = i.cluster.patchApply(ctx, o, patchOptions{manager: inventoryManager, force: true})
		}
	}
	if apierrors.IsConflict(err) {
		return fmt.Errorf("writing inventory %s: someone else has changed or deleted it meanwhile; run again: %w", i.ref, err)
	}
	if err != nil {
		return fmt.Errorf("writing inventory %s: %w", i.ref, err)
	}
	i.version, i.uid = answer.GetResourceVersion(), answer.GetUID()
	return nil
}

func (i *configMapInventory) Remove(ctx context.Context) error {
	o, err := i.cluster.Get(ctx, i.ref)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing inventory %s: %w", i.ref, err)
	}
	if _, err := i.cluster.delete(ctx, o, "", false); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing inventory %s: %w", i.ref, err)
	}
	i.version, i.uid = "", ""
	return nil
}

func (i *configMapInventory) object(entries []Entry) (*unstructured.Unstructured, error) {
	var text bytes.Buffer
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		text.Write(append(line, '\n'))
	}
	meta := map[string]any{"name": i.ref.Name, "namespace": i.ref.Namespace, "labels": i.allLabels()}
	if i.version != "" {
		meta["resourceVersion"] = i.version
	}
	o := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
	if text.Len() <= inventoryPlain {
		o["data"] = map[string]any{inventoryKey: text.String()}
		return &unstructured.Unstructured{Object: o}, nil
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text.Bytes()); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	o["binaryData"] = map[string]any{inventoryGzip: base64.StdEncoding.EncodeToString(packed.Bytes())}
	return &unstructured.Unstructured{Object: o}, nil
}

// allLabels returns the given labels and those that the live cache selects by.
func (i *configMapInventory) allLabels() map[string]any {
	out := map[string]any{}
	for k, v := range i.labels {
		out[k] = v
	}
	requirements, _ := i.cluster.selector.Requirements()
	for _, r := range requirements {
		if v := r.Values().List(); len(v) > 0 {
			out[r.Key()] = v[0]
		}
	}
	return out
}

func decodeEntries(o *unstructured.Unstructured) ([]Entry, error) {
	text, _, _ := unstructured.NestedString(o.Object, "data", inventoryKey)
	if packed, found, _ := unstructured.NestedString(o.Object, "binaryData", inventoryGzip); found {
		z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
		if err != nil {
			return nil, fmt.Errorf("%s is damaged: %w", inventoryGzip, err)
		}
		raw, err := io.ReadAll(io.LimitReader(z, maxInventorySize))
		if err != nil {
			return nil, fmt.Errorf("%s is damaged: %w", inventoryGzip, err)
		}
		text = string(raw)
	}
	var out []Entry
	for n, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if line == "" {
			continue
		}
		var e struct {
			Entry
			// Text is Entry.Held as older versions wrote it.
			Text string `json:"held"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("line %d is damaged: %w", n+1, err)
		}
		if e.HeldReason.IsZero() {
			e.HeldReason.Detail = e.Text
		}
		out = append(out, e.Entry)
	}
	return out, nil
}

func isNamespaceMissing(err error) bool {
	status, ok := statusOf(err)
	return ok && apierrors.IsNotFound(err) && status.Details != nil && status.Details.Kind == "namespaces"
}

// EntriesOf reads the ConfigMap of an inventory, for callers that never write it.
func EntriesOf(configMap *unstructured.Unstructured) ([]Entry, error) {
	return decodeEntries(configMap)
}
