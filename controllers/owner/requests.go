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

// annotationRequested holds the digest of the content that the latest request was for. It is
// written in the same PATCH as the request: where the digest of the content differs, nobody has
// asked for that content yet, whenever the process was killed.
const annotationRequested = "extensions.pergola.dev/requested"

const (
	// requestInterval is how old the latest request for an object may become: a new version of an
	// extension, and what somebody changed in the infrastructure, reach objects that never change.
	// Upstream asks every hour.
	requestInterval = 24 * time.Hour
	// workTime is how long an extension may be Processing until its work is taken for lost.
	workTime = 10 * time.Minute
)

// isCostly reports whether upstream asks for a kind only with a reason, because its reconciliation
// calls the infrastructure at length.
func isCostly(ref apply.Ref) bool {
	return ref.Kind == "Infrastructure" || ref.Kind == "DNSRecord" || !render.IsExtension(ref.GVK())
}

// operation is the one to request for a bundle: that of its node, or a reconciliation outside of a
// flow, as for a repair.
func (r *run) operation(bundle string) string {
	return cmp.Or(r.requests[bundle], operationReconcile)
}

// request asks the controllers of extension objects and of etcd-druid for an operation on the
// objects of a bundle, where they have a reason to. It gives the timestamps of the requests that
// were written.
func (r *run) request(ctx context.Context, c *apply.Cluster, operation string, objects []*unstructured.Unstructured, result *apply.Result) (map[apply.Ref]string, error) {
	stamped, declared := map[apply.Ref]string{}, map[apply.Ref]*unstructured.Unstructured{}
	for _, obj := range objects {
		declared[apply.RefOf(obj)] = obj
	}
	for _, o := range result.Objects {
		obj := declared[o.Ref]
		if obj == nil || !render.IsRequested(o.Ref.GVK()) || o.Err != nil || o.Action == apply.Skipped {
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
		if o.Action == apply.Unchanged && !r.requestDue(o.Ref, live, digest) || isOthersOperation(live, operation) {
			continue
		}
		if stamped[o.Ref], err = r.writeRequest(ctx, c, o.Ref, operation, digest); err != nil {
			return nil, err
		}
	}
	return stamped, nil
}

// requestDue reports whether an object that did not change needs a request: none was made for its
// content, the latest one was not answered, somebody wants the owner to be reconciled, or the
// latest one is old.
func (r *run) requestDue(ref apply.Ref, live *unstructured.Unstructured, digest string) bool {
	now := r.reconciler.Clock.Now()
	stamp, err := time.Parse(time.RFC3339Nano, live.GetAnnotations()[annotationTimestamp])
	switch {
	case live.GetAnnotations()[annotationRequested] != digest || err != nil:
		return true
	case live.GetAnnotations()[annotationOperation] != "":
		return false // it is not taken up yet
	case !health.Answered(live):
		return !isWorking(live, stamp, now)
	case r.report.TakenUp != nil && render.IsExtension(ref.GVK()):
		return stamp.Before(r.begun)
	}
	return !isCostly(ref) && now.Sub(stamp) >= requestInterval
}

// isOthersOperation reports whether an object waits for another operation than the one that is
// requested, which must not be taken from it.
func isOthersOperation(live *unstructured.Unstructured, requested string) bool {
	operation := live.GetAnnotations()[annotationOperation]
	return operation != "" && operation != requested
}

// isWorking reports whether an extension has taken up the request of a time, and is at it.
func isWorking(live *unstructured.Unstructured, requested, now time.Time) bool {
	state, at := lastOperation(live)
	return state == "Processing" && !at.Before(requested.Truncate(time.Second)) && now.Sub(at) < workTime
}

func lastOperation(live *unstructured.Unstructured) (state string, updated time.Time) {
	state, _, _ = unstructured.NestedString(live.Object, "status", "lastOperation", "state")
	text, _, _ := unstructured.NestedString(live.Object, "status", "lastOperation", "lastUpdateTime")
	updated, _ = time.Parse(time.RFC3339, text)
	return state, updated
}

// writeRequest is a PATCH of its own, because the controller takes the annotation away again: it is
// nothing that the bundle owns.
func (r *run) writeRequest(ctx context.Context, c *apply.Cluster, ref apply.Ref, operation, digest string) (string, error) {
	stamp := r.reconciler.Clock.Now().UTC().Format(time.RFC3339Nano)
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		annotationOperation: operation, annotationTimestamp: stamp, annotationRequested: digest,
	}}}
	if _, err := c.MergePatch(ctx, ref, patch, kinds[r.owner.Input.Owner.Kind].role, ""); err != nil {
		return "", c.Explain(ref, "ask its controller to "+operation, err)
	}
	return stamp, nil
}

// repeatRequests asks again where a request got lost while a step waits for the answer: the
// annotation is gone, nobody works on it, and the status is that of an earlier request or
// generation. An extension that reports an error tries again by itself; the next reconciliation
// asks it.
func (r *run) repeatRequests(ctx context.Context, waits []waiter) error {
	now := r.reconciler.Clock.Now()
	for _, w := range waits {
		for _, ref := range w.refs {
			if !render.IsRequested(ref.GVK()) || w.stamped == nil {
				continue
			}
			live, err := w.cluster.Get(ctx, ref)
			if err != nil || live.GetDeletionTimestamp() != nil {
				continue // the verdict says so
			}
			stamp, err := time.Parse(time.RFC3339Nano, live.GetAnnotations()[annotationTimestamp])
			state, _ := lastOperation(live)
			if err != nil || now.Sub(stamp) < remindInterval || live.GetAnnotations()[annotationOperation] != "" ||
				state == "Error" || state == "Failed" || health.Answered(live) || isWorking(live, stamp, now) {
				continue
			}
			if w.stamped[ref], err = r.writeRequest(ctx, w.cluster, ref, r.operation(w.bundle.Name), live.GetAnnotations()[annotationRequested]); err != nil {
				return err
			}
		}
	}
	return nil
}

// requestDigest is that of all that the controller of an object reads when it is asked: the object
// as it is declared, the Secrets that it refers to, and of the Cluster object what Git and users
// decide. What controllers write into a status is left out: they would ask themselves.
func (r *run) requestDigest(ctx context.Context, c *apply.Cluster, obj *unstructured.Unstructured) (string, error) {
	read := []any{obj.Object["spec"], obj.GetLabels(), obj.GetAnnotations()}
	for _, ref := range secretsOf(obj) {
		// A Secret that somebody else keeps is not in the cache, and is told about by whoever keeps
		// it.
		if secret, err := c.Get(ctx, ref); err == nil {
			read = append(read, secret.Object["data"])
		}
	}
	if render.IsExtension(obj.GroupVersionKind()) {
		read = append(read, r.clusterContent(obj.GetNamespace()))
	}
	raw, err := json.Marshal(read)
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", apply.RefOf(obj), err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8]), nil
}

// secretsOf are the Secrets that the specification of an extension object names.
func secretsOf(obj *unstructured.Unstructured) (out []apply.Ref) {
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

// clusterContent is what the Cluster object of a control plane tells extensions, nil where it has
// none.
func (r *run) clusterContent(namespace string) any {
	for _, b := range r.owner.Bundles() {
		for _, obj := range b.Objects {
			if obj.GetKind() != "Cluster" || obj.GroupVersionKind().Group != "extensions.gardener.cloud" || obj.GetName() != namespace {
				continue
			}
			return map[string]any{
				"cloudProfile": nested(obj.Unstructured, "cloudProfile", "spec"),
				"seed":         nested(obj.Unstructured, "seed", "spec"),
				"shoot":        nested(obj.Unstructured, "shoot", "spec"),
				"labels":       nested(obj.Unstructured, "shoot", "metadata", "labels"),
				"annotations":  lasting(nested(obj.Unstructured, "shoot", "metadata", "annotations")),
				"credentials":  nested(obj.Unstructured, "shoot", "status", "credentials"),
			}
		}
	}
	return nil
}

// lasting are annotations without the requests that are made by them once.
func lasting(annotations any) map[string]any {
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

func nested(obj *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, append([]string{"spec"}, path...)...)
	return value
}
