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

// Paths of the webhooks, which are upstream's.
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
	admission.Surroundings
	// Get reads an object anew. The error is that of the API server, as apierrors.IsNotFound knows
	// it.
	Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error)
	// List reads the objects of a namespace that a selector of labels fits anew, not more than
	// limit; 0 is no limit.
	List(ctx context.Context, resource schema.GroupVersionResource, namespace, selector string, limit int64) ([]unstructured.Unstructured, error)
}

// Authorizers tell whether a gardenlet or extension may do what a request says, and why not.
type Authorizers interface {
	May(user string, groups []string, request *admissionv1.AdmissionRequest) (bool, string)
}

// Options of New. All of them are needed but Sizes, Log and Clock.
type Options struct {
	Garden Reader
	// Authorizers know what belongs to which gardenlet: an *authorizer.Handler.
	Authorizers Authorizers
	// Sizes limits objects; nil does not.
	Sizes *operatorv1alpha1.ResourceAdmissionConfiguration
	// Log gets a line for objects that are too large where that is only logged. Default: none.
	Log *slog.Logger
	// Clock says which tokens and certificates have ended; default the real one.
	Clock clock.PassiveClock
}

type webhooks struct{ Options }

// New makes the webhooks, by their paths.
func New(o Options) map[string]admission.Answer {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	w := &webhooks{o}
	return map[string]admission.Answer{
		PathAuditPolicies:        w.configuration(auditPolicy),
		PathAuthentication:       w.configuration(authentication),
		PathAuthorization:        w.configuration(authorization),
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

// forbidden refuses because of who asks or what stands around an object.
func forbidden(format string, args ...any) (*admissionv1.AdmissionResponse, error) {
	return refused(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(format, args...))
}

// invalid refuses because of what an object says.
func invalid(format string, args ...any) (*admissionv1.AdmissionResponse, error) {
	return refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, fmt.Sprintf(format, args...))
}

func refused(code int32, reason metav1.StatusReason, message string) (*admissionv1.AdmissionResponse, error) {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}, nil
}

// read takes an object out of a request; nil if there is none.
func read[T any](raw []byte) (*T, error) {
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

// both takes the object and the one before out of a request.
func both[T any](request *admissionv1.AdmissionRequest) (object, old *T, err error) {
	if object, err = read[T](request.Object.Raw); err != nil {
		return nil, nil, err
	}
	if old, err = read[T](request.OldObject.Raw); err != nil {
		return nil, nil, err
	}
	if object == nil && request.Operation != admissionv1.Delete || old == nil && request.Operation != admissionv1.Create {
		return nil, nil, admission.BadRequest("the request of operation %s has not the objects that it must have", request.Operation)
	}
	return object, old, nil
}
