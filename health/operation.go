// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// checkOperationAndConditions judges objects with conditions and a last operation: Garden and
// Shoot. It follows upstream's label shoot.gardener.cloud/status (pkg/api/core/v1beta1/helper:
// ComputeShootStatus). A failed operation, or a False or Unknown condition, is unhealthy; a running
// operation is not.
func checkOperationAndConditions(obj *unstructured.Unstructured) *Failure {
	switch state := stringAt(obj, "status", "lastOperation", "state"); state {
	case "Error", "Failed", "Aborted":
		f := failf("the last operation is in state %s: %s", state, stringAt(obj, "status", "lastOperation", "description"))
		for _, e := range listAt(obj.Object, "status", "lastErrors") {
			f.Message += "; " + textAt(e, "description")
			f.Codes = append(f.Codes, textsAt(e, "codes")...)
		}
		f.Waiting = state != "Failed"
		return f
	case "":
		return waitf("no operation is reported yet")
	}
	for _, c := range conditionsOf(obj) {
		if c.status == "False" || c.status == "Unknown" {
			return c.expect("True")
		}
	}
	return nil
}

func operationProgressing(obj *unstructured.Unstructured) (bool, string) {
	if f := checkGenerationObserved(obj); f != nil {
		return true, f.Message
	}
	if state := stringAt(obj, "status", "lastOperation", "state"); state == "Processing" || state == "Pending" {
		return true, stringAt(obj, "status", "lastOperation", "description")
	}
	for _, c := range conditionsOf(obj) {
		if c.status == "Progressing" {
			return true, c.kind + ": " + c.cause()
		}
	}
	return false, ""
}
