// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/webhook/admission"
)

// Paths of the webhooks (upstream's).
const (
	PathAuditPolicies        = "/webhooks/audit-policies"
	PathAuthentication       = "/webhooks/authentication-configuration"
	PathAuthorization        = "/webhooks/authorization-configuration"
	PathInternalDomain       = "/webhooks/admission/validate-internal-domain"
	PathKubeconfigSecrets    = "/webhooks/validate-kubeconfig-secrets"
	PathKubeconfigSecretRefs = "/webhooks/validate-shoot-kubeconfig-secret-ref"
	PathNamespaceDeletion    = "/webhooks/validate-namespace-deletion"
	PathProviderLabels       = "/webhooks/sync-provider-secret-labels"
	PathResourceSize         = "/webhooks/validate-resource-size"
	PathSeedRestriction      = "/webhooks/admission/seedrestriction"
	PathShootRestriction     = "/webhooks/admission/shootrestriction"
	PathUpdateRestriction    = "/webhooks/update-restriction"
)

// Reader reads the virtual garden.
type Reader interface {
	admission.ObjectLister
	// Get reads an object from the API server, and returns its error, as for apierrors.IsNotFound.
	Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error)
	// List reads at most limit objects of a namespace that match a label selector from the API
	// server; limit 0 returns all.
	List(ctx context.Context, resource schema.GroupVersionResource, namespace, selector string, limit int64) ([]unstructured.Unstructured, error)
}

// Authorizers report whether a gardenlet or extension may make a request, and why not.
type Authorizers interface {
	IsAllowed(user string, groups []string, request *admissionv1.AdmissionRequest) (bool, string)
}

// Options are the options of New. All fields except Sizes, Log and Clock are required.
type Options struct {
	Garden Reader
	// Authorizers know the objects of each gardenlet: an *authorizer.Handler.
	Authorizers Authorizers
	// SizeLimits limits objects; nil sets no limits.
	SizeLimits *operatorv1alpha1.ResourceAdmissionConfiguration
	// Log gets a line for each too large object if the mode is only to log. The default is none.
	Log *slog.Logger
	// Clock decides which tokens and certificates have expired; the default is the real one.
	Clock clock.PassiveClock
}

type webhooks struct{ Options }

// New returns the webhooks by path.
func New(o Options) map[string]admission.Responder {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	w := &webhooks{o}
	return map[string]admission.Responder{
		PathAuditPolicies:        w.checkConfiguration(auditPolicy),
		PathAuthentication:       w.checkConfiguration(authentication),
		PathAuthorization:        w.checkConfiguration(authorization),
		PathInternalDomain:       w.internalDomain,
		PathKubeconfigSecrets:    w.kubeconfigSecret,
		PathKubeconfigSecretRefs: w.kubeconfigSecretRef,
		PathNamespaceDeletion:    w.namespaceDeletion,
		PathProviderLabels:       w.providerLabels,
		PathResourceSize:         w.resourceSize,
		PathSeedRestriction:      w.seedRestriction,
		PathShootRestriction:     w.shootRestriction,
		PathUpdateRestriction:    w.updateRestriction,
	}
}

func allowed() (*admissionv1.AdmissionResponse, error) {
	return &admissionv1.AdmissionResponse{Allowed: true}, nil
}

// forbidden rejects a request because of its user or other objects.
func forbidden(format string, args ...any) (*admissionv1.AdmissionResponse, error) {
	return rejectedResponse(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(format, args...))
}

// invalid rejects a request because of the content of its object.
func invalid(format string, args ...any) (*admissionv1.AdmissionResponse, error) {
	return rejectedResponse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, fmt.Sprintf(format, args...))
}

func rejectedResponse(code int32, reason metav1.StatusReason, message string) (*admissionv1.AdmissionResponse, error) {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}, nil
}

// decodeObject decodes an object of a request; the result is nil if there is none.
func decodeObject[T any](raw []byte) (*T, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	object := new(T)
	if err := json.Unmarshal(raw, object); err != nil {
		// The cause may quote the object, which may be a Secret.
		return nil, admission.BadRequest("the object of the request cannot be read as a %T", *object)
	}
	return object, nil
}

// decodeObjects decodes the new and the old object of a request.
func decodeObjects[T any](request *admissionv1.AdmissionRequest) (object, old *T, err error) {
	if object, err = decodeObject[T](request.Object.Raw); err != nil {
		return nil, nil, err
	}
	if old, err = decodeObject[T](request.OldObject.Raw); err != nil {
		return nil, nil, err
	}
	if object == nil && request.Operation != admissionv1.Delete || old == nil && request.Operation != admissionv1.Create {
		return nil, nil, admission.BadRequest("the request of operation %s lacks a required object", request.Operation)
	}
	return object, old, nil
}
