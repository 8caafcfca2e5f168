// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

const groupCertManagement = "cert.gardener.cloud"

// CheckCertificate fails unless the state is Ready and the Ready condition, if present, is True
// (pkg/utils/kubernetes/health/certificate.go).
func CheckCertificate(obj *unstructured.Unstructured) error { return toError(checkCertificate(obj)) }

// CheckCertificateIssuer fails unless the state is Ready.
func CheckCertificateIssuer(obj *unstructured.Unstructured) error {
	return toError(checkCertificateIssuer(obj))
}

func checkCertificate(obj *unstructured.Unstructured) *Failure {
	return firstFailure(checkOptionalCondition(obj, "Ready", "True"), checkStateReady(obj))
}

func checkCertificateIssuer(obj *unstructured.Unstructured) *Failure { return checkStateReady(obj) }

func checkStateReady(obj *unstructured.Unstructured) *Failure {
	state := stringAt(obj, "status", "state")
	if state == "Ready" {
		return nil
	}
	f := failf("%s has state %q, expected \"Ready\"", obj.GetKind(), state)
	if message := stringAt(obj, "status", "message"); message != "" {
		f.Message += ": " + message
	}
	f.Waiting = state == "" || state == "Pending"
	return f
}

// IsCertificateProgressing reports whether the latest generation is not yet observed.
func IsCertificateProgressing(obj *unstructured.Unstructured) (bool, string) {
	return isGenerationProgressing(obj)
}

// IsCertificateIssuerProgressing reports whether the latest generation is not yet observed.
func IsCertificateIssuerProgressing(obj *unstructured.Unstructured) (bool, string) {
	return isGenerationProgressing(obj)
}

func isGenerationProgressing(obj *unstructured.Unstructured) (bool, string) {
	if f := checkGenerationObserved(obj); f != nil {
		return true, f.Message
	}
	return false, obj.GetKind() + " is fully rolled out"
}
