// SPDX-License-Identifier: Apache-2.0

package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// judgeOtherKind judges a kind without a rule of Gardener; see JudgeAllKinds. It is unhealthy if it
// cannot recover without a change, and progressing until it is ready. Where kstatus only reads
// conditions that the kind does not have, the kind's own fields are read.
func judgeOtherKind(obj *unstructured.Unstructured, in inputs) (failure *Failure, progressing bool, message string) {
	if obj.GetDeletionTimestamp() != nil {
		return nil, true, deletionMessage(obj)
	}
	gk := obj.GroupVersionKind().GroupKind()
	switch gk.Group + "/" + gk.Kind {
	case "/PersistentVolumeClaim":
		return judgeClaim(obj)
	case "/PersistentVolume":
		if stringAt(obj, "status", "phase") == "Failed" {
			return failf("the volume could not be reclaimed: %s", stringAt(obj, "status", "message")), false, ""
		}
	case "autoscaling/HorizontalPodAutoscaler":
		return judgeAutoscaler(obj)
	}
	switch status, message := kstatusWithTime(obj, in.now); status {
	case StatusFailed:
		return failf("%s", message), false, ""
	case StatusInProgress:
		return nil, true, message
	}
	return nil, false, ""
}

// judgeClaim judges a PersistentVolumeClaim. A claim that waits for its first consumer is healthy:
// the volume comes with the first pod, if any. Such a claim has a class but no provisioner yet.
func judgeClaim(obj *unstructured.Unstructured) (failure *Failure, progressing bool, message string) {
	switch stringAt(obj, "status", "phase") {
	case "Bound":
		return nil, false, ""
	case "Lost":
		return failf("the claim has lost its volume %q", stringAt(obj, "spec", "volumeName")), false, ""
	}
	if isWaitingForConsumer(obj.GetAnnotations(), stringAt(obj, "spec", "storageClassName"), stringAt(obj, "spec", "volumeName")) {
		return nil, false, "PersistentVolumeClaim waits for its first consumer"
	}
	return nil, true, "the claim is not bound to a volume yet"
}

func isWaitingForConsumer(annotations map[string]string, class, volume string) bool {
	for _, key := range []string{"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"} {
		if annotations[key] != "" {
			return false
		}
	}
	return class != "" && volume == ""
}

// judgeAutoscaler reports why an autoscaler cannot scale, but as healthy. Metrics may be missing,
// and the scaled object has its own verdict. Nothing should wait for it.
func judgeAutoscaler(obj *unstructured.Unstructured) (failure *Failure, progressing bool, message string) {
	conditions, err := autoscalerConditions(obj)
	if err != nil {
		return nil, false, ""
	}
	for _, c := range conditions {
		if isAutoscalerFailed(c) && c.status != "True" {
			return nil, false, c.cause()
		}
	}
	return nil, false, ""
}

// deletionMessage says what blocks a deletion: the conditions of a Namespace, or the finalizers of
// other objects.
func deletionMessage(obj *unstructured.Unstructured) string {
	if obj.GetKind() == "Namespace" {
		for _, kind := range []string{"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure",
			"NamespaceDeletionContentFailure", "NamespaceFinalizersRemaining", "NamespaceContentRemaining"} {
			if c, ok := conditionOf(obj, kind); ok && c.status == "True" {
				return "it is being deleted: " + c.cause()
			}
		}
	}
	if finalizers := obj.GetFinalizers(); len(finalizers) > 0 {
		return "it is being deleted and waits for " + quoteAll(finalizers)
	}
	return "it is being deleted"
}
