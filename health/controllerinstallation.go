// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// checkControllerInstallation fails unless the extension is installed and healthy, and Valid, if
// reported, is True (pkg/api/core/v1beta1/helper: IsControllerInstallationSuccessful).
func checkControllerInstallation(obj *unstructured.Unstructured) *Failure {
	return firstFailure(checkOptionalCondition(obj, "Valid", "True"), checkConditionTrue(obj, "Installed"), checkConditionTrue(obj, "Healthy"))
}

func controllerInstallationProgressing(obj *unstructured.Unstructured) (bool, string) {
	c, ok := conditionOf(obj, "Progressing")
	if ok && c.status == "False" {
		return false, ""
	}
	if !ok {
		return true, `condition "Progressing" is missing`
	}
	return true, c.cause()
}
