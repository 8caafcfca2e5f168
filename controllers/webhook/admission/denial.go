// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pergola-dev/pergola/schemas"
)

// auditRules is the key of the audit annotation with the ids of the rules that denied a request.
const auditRules = "rules"

// causeType maps the type of a finding to a cause of a Status.
func causeType(typ schemas.ViolationType) metav1.CauseType {
	switch typ {
	case schemas.TypeRequired:
		return metav1.CauseType(field.ErrorTypeRequired)
	case schemas.TypeNotSupported:
		return metav1.CauseType(field.ErrorTypeNotSupported)
	case schemas.TypeForbidden:
		return metav1.CauseType(field.ErrorTypeForbidden)
	case schemas.TypeDuplicate:
		return metav1.CauseType(field.ErrorTypeDuplicate)
	case schemas.TypeTypeInvalid:
		return metav1.CauseType(field.ErrorTypeTypeInvalid)
	case schemas.TypeTooLong:
		return metav1.CauseType(field.ErrorTypeTooLong)
	case schemas.TypeTooMany:
		return metav1.CauseType(field.ErrorTypeTooMany)
	}
	return metav1.CauseType(field.ErrorTypeInvalid)
}

func allowed() *admissionv1.AdmissionResponse { return &admissionv1.AdmissionResponse{Allowed: true} }

// responseFor converts findings to a response: errors deny, and warnings are passed to the client.
func responseFor(request *admissionv1.AdmissionRequest, found []schemas.Violation) *admissionv1.AdmissionResponse {
	response := allowed()
	var errs []schemas.Violation
	for _, v := range found {
		if v.Severity == schemas.SeverityError {
			errs = append(errs, v)
		} else {
			response.Warnings = append(response.Warnings, findingText(v))
		}
	}
	if len(errs) == 0 {
		return response
	}
	response.Allowed = false
	response.AuditAnnotations = map[string]string{auditRules: strings.Join(ruleIDs(errs), ",")}
	details := &metav1.StatusDetails{Group: request.Kind.Group, Kind: request.Kind.Kind, Name: errs[0].Name}
	lines := make([]string, len(errs))
	for i, v := range errs {
		lines[i] = findingText(v)
		details.Causes = append(details.Causes, metav1.StatusCause{Type: causeType(v.Type), Field: v.Field, Message: v.Message})
	}
	response.Result = &metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Details: details,
		Message: fmt.Sprintf("%s is not valid: %s", objectName(errs[0]), strings.Join(lines, "; ")),
	}
	return response
}

// findingText returns a finding without the location and object, which the request has.
func findingText(v schemas.Violation) string {
	return schemas.Violation{Severity: v.Severity, Field: v.Field, Rule: v.Rule, Message: v.Message}.String()[len(v.Severity)+2:]
}

func objectName(v schemas.Violation) string {
	if v.Namespace != "" {
		return v.Kind + " " + v.Namespace + "/" + v.Name
	}
	return v.Kind + " " + v.Name
}

func ruleIDs(found []schemas.Violation) []string {
	var ids []string
	for _, v := range found {
		ids = append(ids, v.Rule)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func denyingRules(response *admissionv1.AdmissionResponse) string {
	return response.AuditAnnotations[auditRules]
}

// requestError is the error of a malformed request.
type requestError struct{ message string }

func (r *requestError) Error() string { return r.message }

// BadRequest returns the error of an Answer to a malformed request.
func BadRequest(format string, args ...any) error { return badRequest(format, args...) }

func badRequest(format string, args ...any) error {
	return &requestError{message: fmt.Sprintf(format, args...)}
}

func unknownKind(request *admissionv1.AdmissionRequest) error {
	return badRequest("Pergola has no rules for %s of %s/%s; remove it from the webhook configuration (pergola admission-controller configuration prints the right one)",
		request.Kind.Kind, request.Kind.Group, request.Kind.Version)
}

// errorResponse is the response if no verdict is possible. The API server shows its message.
func errorResponse(err error) *admissionv1.AdmissionResponse {
	status := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Code: http.StatusInternalServerError,
		Message: "the rules cannot be checked: " + err.Error()}
	var bad *requestError
	if errors.As(err, &bad) {
		status.Reason, status.Code, status.Message = metav1.StatusReasonBadRequest, http.StatusBadRequest, bad.message
	}
	return &admissionv1.AdmissionResponse{Result: status}
}
