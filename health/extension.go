// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const annotationTimestamp = "gardener.cloud/timestamp"

// CheckExtensionObject is the check of every kind of extensions.gardener.cloud, and of BackupBucket
// and BackupEntry of the garden. It requires: no error, the latest generation observed, the
// requested operation accepted, and the last operation succeeded, not before the request
// (pkg/utils/kubernetes/health/extensions.go).
func CheckExtensionObject(obj *unstructured.Unstructured) error {
	if gvk := obj.GroupVersionKind(); !isExtensionKind(gvk.Group, gvk.Kind) {
		return failf("%s is not an extension object", gvk.Kind)
	}
	return toError(checkExtensionObject(obj))
}

// HasHandledOperation reports whether the controller of an extension object, or of an Etcd, has
// handled the requested operation and the latest generation. Extension objects also have to pass
// their check.
func HasHandledOperation(obj *unstructured.Unstructured) bool {
	if isExtensionKind(obj.GroupVersionKind().Group, obj.GetKind()) {
		return checkExtensionObject(obj) == nil
	}
	_, asked := obj.GetAnnotations()[annotationOperation]
	return !asked && intOrZero(obj, "status", "observedGeneration") == generation(obj)
}

func isExtensionKind(group, kind string) bool {
	switch group {
	case "extensions.gardener.cloud":
		return kind != "Cluster"
	case "core.gardener.cloud":
		return kind == "BackupBucket" || kind == "BackupEntry"
	}
	return false
}

func checkExtensionObject(obj *unstructured.Unstructured) *Failure {
	if e, ok := fieldAt(obj.Object, "status", "lastError").(map[string]any); ok {
		f := failf("the extension reports an error: %s", textAt(e, "description"))
		f.Codes = textsAt(e, "codes")
		return f
	}
	if seen := intOrZero(obj, "status", "observedGeneration"); seen != generation(obj) {
		return waitf("observed generation outdated (%d/%d)", seen, generation(obj))
	}
	if op, ok := obj.GetAnnotations()[annotationOperation]; ok {
		return waitf("the extension has not started operation %q yet", op)
	}
	last, ok := fieldAt(obj.Object, "status", "lastOperation").(map[string]any)
	if !ok {
		return waitf("the extension has not reported an operation yet")
	}
	if state := textAt(last, "state"); state != "Succeeded" {
		f := failf("the last operation is in state %s, expected Succeeded", state)
		if d := textAt(last, "description"); d != "" {
			f.Message += ": " + d
		}
		f.Waiting = state == "Processing" || state == "Pending" || state == ""
		return f
	}
	return checkAfterRequest(obj, timeAt(last, "lastUpdateTime"))
}

// checkAfterRequest fails until the reconciliation that the timestamp annotation requests has
// happened. The annotation has nanoseconds, and the status has seconds.
func checkAfterRequest(obj *unstructured.Unstructured, done time.Time) *Failure {
	stamp, ok := obj.GetAnnotations()[annotationTimestamp]
	if !ok {
		return nil
	}
	requested, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return failf("annotation %s is not a time: %v", annotationTimestamp, err)
	}
	if requested = requested.Truncate(time.Second).UTC(); requested.After(done.UTC()) {
		return waitf("reconciliation was requested at %s, the last update was at %s",
			requested.Format(time.RFC3339), done.UTC().Format(time.RFC3339))
	}
	return nil
}
