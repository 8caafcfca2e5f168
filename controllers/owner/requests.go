// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/render"
)

// Annotations of the protocol between gardenlet and extensions (gardener:
// docs/extensions/reconcile-trigger.md).
const (
	annotationOperation = "gardener.cloud/operation"
	annotationTimestamp = "gardener.cloud/timestamp"

	operationReconcile = "reconcile"
)

// annotationRequested is the digest of the content of the latest request, written in the same
// PATCH. If the current digest differs, no request was made for the current content, even after a
// crash.
const annotationRequested = "extensions.pergola.dev/requested"

const (
	// maxRequestAge is the maximum age of the latest request, so that new extension versions and
	// changes in the infrastructure affect unchanged objects. Upstream repeats it every hour.
	maxRequestAge = 24 * time.Hour
	// maxProcessingTime is how long an extension may be Processing before its work counts as lost.
	maxProcessingTime = 10 * time.Minute
)

// isCostly reports whether upstream avoids periodic requests for a kind, because its reconciliation
// makes long calls to the infrastructure.
func isCostly(ref apply.Ref) bool {
	return ref.Kind == "Infrastructure" || ref.Kind == "DNSRecord" || !render.IsExtension(ref.GVK())
}

// requestedOperation returns the operation to request for a bundle: its node's operation, or
// reconcile outside a flow, as in a repair.
func (r *run) requestedOperation(bundle string) string {
	return cmp.Or(r.requests[bundle], operationReconcile)
}

// requestOperations requests an operation from the controllers of extension objects and of
// etcd-druid for the objects of a bundle, if it is due. It returns the timestamps of the written
// requests.
func (r *run) requestOperations(ctx context.Context, c *apply.Cluster, operation string, objects []*unstructured.Unstructured, result *apply.Result) (map[apply.Ref]string, error) {
	stamped, declared := map[apply.Ref]string{}, map[apply.Ref]*unstructured.Unstructured{}
	for _, obj := range objects {
		declared[apply.RefOf(obj)] = obj
	}
	for _, o := range result.Objects {
		obj := declared[o.Ref]
		if obj == nil || !render.IsReconciledOnRequest(o.Ref.GVK()) || o.Err != nil || o.Action == apply.Skipped {
			continue
		}
		digest, err := r.requestDigest(ctx, c, obj)
		if err != nil {
			return nil, err
		}
		live, err := c.Get(ctx, o.Ref)
		if err != nil {
			return nil, c.Explain(o.Ref, "read the request of", err)
		}
		if o.Action == apply.Unchanged && !r.isRequestDue(o.Ref, live, digest) || hasOtherOperation(live, operation) {
			continue
		}
		if stamped[o.Ref], err = r.writeRequest(ctx, c, o.Ref, operation, digest); err != nil {
			return nil, err
		}
	}
	return stamped, nil
}

// isRequestDue reports whether an unchanged object needs a request. The reasons: its content was
// never requested, the latest request is old or has no answer, or the owner's reconciliation was
// requested.
func (r *run) isRequestDue(ref apply.Ref, live *unstructured.Unstructured, digest string) bool {
	now := r.reconciler.Clock.Now()
	stamp, err := time.Parse(time.RFC3339Nano, live.GetAnnotations()[annotationTimestamp])
	switch {
	case live.GetAnnotations()[annotationRequested] != digest || err != nil:
		return true
	case live.GetAnnotations()[annotationOperation] != "":
		return false // the controller has not started yet
	case !health.HasHandledOperation(live):
		return !isProcessing(live, stamp, now)
	case r.report.RequestedOperation != nil && render.IsExtension(ref.GVK()):
		return stamp.Before(r.startTime)
	}
	return !isCostly(ref) && now.Sub(stamp) >= maxRequestAge
}

// hasOtherOperation reports whether an object has another pending operation, which must not be
// overwritten.
func hasOtherOperation(live *unstructured.Unstructured, requested string) bool {
	operation := live.GetAnnotations()[annotationOperation]
	return operation != "" && operation != requested
}

// isProcessing reports whether an extension is processing a request.
func isProcessing(live *unstructured.Unstructured, requested, now time.Time) bool {
	state, at := lastOperation(live)
	return state == "Processing" && !at.Before(requested.Truncate(time.Second)) && now.Sub(at) < maxProcessingTime
}

func lastOperation(live *unstructured.Unstructured) (state string, updated time.Time) {
	state, _, _ = unstructured.NestedString(live.Object, "status", "lastOperation", "state")
	text, _, _ := unstructured.NestedString(live.Object, "status", "lastOperation", "lastUpdateTime")
	updated, _ = time.Parse(time.RFC3339, text)
	return state, updated
}

// writeRequest uses a separate PATCH, because the controller removes the annotation: the bundle
// run not own it.
func (r *run) writeRequest(ctx context.Context, c *apply.Cluster, ref apply.Ref, operation, digest string) (string, error) {
	stamp := r.reconciler.Clock.Now().UTC().Format(time.RFC3339Nano)
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		annotationOperation: operation, annotationTimestamp: stamp, annotationRequested: digest,
	}}}
	if _, err := c.MergePatch(ctx, ref, patch, settingsByKind[r.owner.Input.Owner.Kind].fieldManager, ""); err != nil {
		return "", c.Explain(ref, "request "+operation+" of", err)
	}
	return stamp, nil
}

// repeatRequests repeats lost requests while a step waits: no annotation exists, no controller is
// Processing, and the status is older than the request or generation. An extension in state Error
// retries automatically; the next reconciliation requests it.
func (r *run) repeatRequests(ctx context.Context, waits []waiter) error {
	now := r.reconciler.Clock.Now()
	for _, w := range waits {
		for _, ref := range w.refs {
			if !render.IsReconciledOnRequest(ref.GVK()) || w.requestTimestamps == nil {
				continue
			}
			live, err := w.cluster.Get(ctx, ref)
			if err != nil || live.GetDeletionTimestamp() != nil {
				continue // the verdict reports it
			}
			stamp, err := time.Parse(time.RFC3339Nano, live.GetAnnotations()[annotationTimestamp])
			state, _ := lastOperation(live)
			if err != nil || now.Sub(stamp) < repeatInterval || live.GetAnnotations()[annotationOperation] != "" ||
				state == "Error" || state == "Failed" || health.HasHandledOperation(live) || isProcessing(live, stamp, now) {
				continue
			}
			if w.requestTimestamps[ref], err = r.writeRequest(ctx, w.cluster, ref, r.requestedOperation(w.bundle.Name), live.GetAnnotations()[annotationRequested]); err != nil {
				return err
			}
		}
	}
	return nil
}

// requestDigest is the digest of the controller's input: the declared object, its Secrets, and the
// parts of the Cluster object from Git and users. It excludes status written by controllers, which
// would trigger themselves.
func (r *run) requestDigest(ctx context.Context, c *apply.Cluster, obj *unstructured.Unstructured) (string, error) {
	read := []any{obj.Object["spec"], obj.GetLabels(), obj.GetAnnotations()}
	for _, ref := range referencedSecrets(obj) {
		// The cache does not have foreign Secrets; their owners report changes.
		if secret, err := c.Get(ctx, ref); err == nil {
			read = append(read, secret.Object["data"])
		}
	}
	if render.IsExtension(obj.GroupVersionKind()) {
		read = append(read, r.clusterInput(obj.GetNamespace()))
	}
	raw, err := json.Marshal(read)
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", apply.RefOf(obj), err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8]), nil
}

// referencedSecrets returns the Secrets that the spec of an extension object names.
func referencedSecrets(obj *unstructured.Unstructured) (out []apply.Ref) {
	name, _, _ := unstructured.NestedString(obj.Object, "spec", "secretRef", "name")
	if name == "" {
		return nil
	}
	namespace, _, _ := unstructured.NestedString(obj.Object, "spec", "secretRef", "namespace")
	if namespace == "" {
		namespace = obj.GetNamespace()
	}
	return []apply.Ref{{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}}
}

// clusterInput returns the input for extensions in the Cluster object of a control plane, or nil
// without one.
func (r *run) clusterInput(namespace string) any {
	for _, b := range r.owner.Bundles() {
		for _, obj := range b.Objects {
			if obj.GetKind() != "Cluster" || obj.GroupVersionKind().Group != "extensions.gardener.cloud" || obj.GetName() != namespace {
				continue
			}
			return map[string]any{
				"cloudProfile": specField(obj.Unstructured, "cloudProfile", "spec"),
				"seed":         specField(obj.Unstructured, "seed", "spec"),
				"shoot":        specField(obj.Unstructured, "shoot", "spec"),
				"labels":       specField(obj.Unstructured, "shoot", "metadata", "labels"),
				"annotations":  permanentAnnotations(specField(obj.Unstructured, "shoot", "metadata", "annotations")),
				"credentials":  specField(obj.Unstructured, "shoot", "status", "credentials"),
			}
		}
	}
	return nil
}

// permanentAnnotations returns the annotations without one-shot requests.
func permanentAnnotations(annotations any) map[string]any {
	all, _ := annotations.(map[string]any)
	out := maps.Clone(all)
	for _, once := range []string{annotationOperation, annotationTimestamp, "maintenance.gardener.cloud/operation", "shoot.gardener.cloud/tasks"} {
		delete(out, once)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func specField(obj *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, append([]string{"spec"}, path...)...)
	return value
}
