// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reviewKind is the kind of requests and responses.
const reviewKind = "AdmissionReview"

// reviewError is a malformed request.
type reviewError struct {
	code int
	// message is for the client, reason for the log: it contains nothing of the request.
	message, reason string
}

func newReviewError(code int, reason string, detail string) *reviewError {
	message := reason
	if detail != "" {
		message += ": " + detail
	}
	return &reviewError{code: code, message: message, reason: reason}
}

// readReview decodes the AdmissionReview of a request.
func readReview(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionReview, *reviewError) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, newReviewError(http.StatusMethodNotAllowed, "only POST is allowed", "")
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != runtime.ContentTypeJSON {
		return nil, newReviewError(http.StatusUnsupportedMediaType, "the request must have Content-Type "+runtime.ContentTypeJSON, "")
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return nil, newReviewError(http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d MiB", large.Limit>>20), "")
		}
		return nil, newReviewError(http.StatusBadRequest, "the request cannot be read", err.Error())
	}
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(data, review); err != nil {
		return nil, newReviewError(http.StatusBadRequest, "the request is not an AdmissionReview in JSON", err.Error())
	}
	if want := admissionv1.SchemeGroupVersion.String(); review.APIVersion != want || review.Kind != reviewKind {
		return nil, newReviewError(http.StatusBadRequest, fmt.Sprintf("the request must be a %s of %s", reviewKind, want), fmt.Sprintf("it is %q of %q", review.Kind, review.APIVersion))
	}
	if review.Request == nil || review.Request.UID == "" {
		return nil, newReviewError(http.StatusBadRequest, "the AdmissionReview has no request, or one without uid", "")
	}
	return review, nil
}

// writeReview sends the response to an AdmissionReview.
func writeReview(w http.ResponseWriter, review *admissionv1.AdmissionReview, response *admissionv1.AdmissionResponse) error {
	response.UID = review.Request.UID
	data, err := json.Marshal(&admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response})
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return fmt.Errorf("encoding an answer: %w", err)
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("sending an answer: %w", err)
	}
	return nil
}

// kindOf returns the kind of a request's objects.
func kindOf(request *admissionv1.AdmissionRequest) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: request.Kind.Group, Version: request.Kind.Version, Kind: request.Kind.Kind}
}

// decodeRequestObject decodes an object of a request; the result is nil if there is none.
func decodeRequestObject(request *admissionv1.AdmissionRequest, raw runtime.RawExtension) (*unstructured.Unstructured, error) {
	if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw.Raw); err != nil {
		return nil, badRequest("the object of the request cannot be read: %v", err)
	}
	if got, want := object.GroupVersionKind(), kindOf(request); got != want {
		return nil, badRequest("the request is about a %s, but its object is a %s", want, got)
	}
	if object.GetNamespace() == "" && request.Namespace != "" && isNamespaced(request) {
		object.SetNamespace(request.Namespace)
	}
	return object, nil
}

// isNamespaced reports whether the objects of a request are namespaced. For a Namespace, the
// request's namespace is its own name.
func isNamespaced(request *admissionv1.AdmissionRequest) bool {
	return request.Kind.Group != "" || request.Kind.Kind != "Namespace"
}
