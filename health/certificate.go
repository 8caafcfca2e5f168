package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

const groupCertManagement = "cert.gardener.cloud"

// CheckCertificate fails unless the state is Ready and the Ready condition, if present, is True
// (pkg/utils/kubernetes/health/certificate.go).
func CheckCertificate(obj *unstructured.Unstructured) error { return asError(checkCertificate(obj)) }

// CheckCertificateIssuer fails unless the state is Ready.
func CheckCertificateIssuer(obj *unstructured.Unstructured) error {
	return asError(checkCertificateIssuer(obj))
}

func checkCertificate(obj *unstructured.Unstructured) *Failure {
	return first(optional(obj, "Ready", "True"), stateReady(obj))
}

func checkCertificateIssuer(obj *unstructured.Unstructured) *Failure { return stateReady(obj) }

func stateReady(obj *unstructured.Unstructured) *Failure {
	state := text(obj, "status", "state")
	if state == "Ready" {
		return nil
	}
	f := failf("%s has state %q, expected \"Ready\"", obj.GetKind(), state)
	if message := text(obj, "status", "message"); message != "" {
		f.Message += ": " + message
	}
	f.Waiting = state == "" || state == "Pending"
	return f
}

// IsCertificateProgressing reports whether the latest generation is not yet observed.
func IsCertificateProgressing(obj *unstructured.Unstructured) (bool, string) {
	return generationProgressing(obj)
}

// IsCertificateIssuerProgressing reports whether the latest generation is not yet observed.
func IsCertificateIssuerProgressing(obj *unstructured.Unstructured) (bool, string) {
	return generationProgressing(obj)
}

func generationProgressing(obj *unstructured.Unstructured) (bool, string) {
	if f := observed(obj); f != nil {
		return true, f.Message
	}
	return false, obj.GetKind() + " is fully rolled out"
}
