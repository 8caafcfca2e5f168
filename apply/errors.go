// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Reason is the category of an error; the Hint of an ObjectError is its next step.
type Reason string

// The reasons have the order in which Errors are reported: root causes come first.
const (
	ReasonCanceled           Reason = "Canceled"           // the context ended
	ReasonUnreachable        Reason = "Unreachable"        // no connection to the API server
	ReasonCertificateExpired Reason = "CertificateExpired" // client or server certificate
	ReasonUnauthorized       Reason = "Unauthorized"       // the server does not know the user
	ReasonForbidden          Reason = "Forbidden"          // RBAC or admission does not allow it
	// ReasonTerminatingNamespace means that the namespace is being deleted
	ReasonTerminatingNamespace Reason = "TerminatingNamespace"
	ReasonNotFound             Reason = "NotFound" // usually of the namespace
	// ReasonInvalid means that the server's validation rejects the object
	ReasonInvalid Reason = "Invalid"
	// ReasonImmutable means that the update changes a field that cannot change
	ReasonImmutable      Reason = "Immutable"
	ReasonConflict       Reason = "Conflict"       // another field manager owns the field
	ReasonOwnedElsewhere Reason = "OwnedElsewhere" // two sets want the same object
	// ReasonWebhookDenied means that an admission webhook or policy denied it, or did not answer
	ReasonWebhookDenied Reason = "WebhookDenied"
	ReasonTimeout       Reason = "Timeout" // the server or a wait took too long
	ReasonStuckDeletion Reason = "Stuck"   // a deletion waits for a finalizer
	ReasonOther         Reason = "Other"
	ReasonKindNotServed Reason = "NoKind" // the API server does not serve the kind
	// ReasonSkippedDependency means that the object was not tried, because another one failed
	ReasonSkippedDependency Reason = "SkippedDependency"
)

var reasonOrder = []Reason{ReasonCanceled, ReasonUnreachable, ReasonCertificateExpired, ReasonUnauthorized, ReasonForbidden, ReasonTerminatingNamespace,
	ReasonNotFound, ReasonInvalid, ReasonImmutable, ReasonConflict, ReasonOwnedElsewhere, ReasonWebhookDenied, ReasonTimeout, ReasonStuckDeletion, ReasonOther, ReasonKindNotServed, ReasonSkippedDependency}

// ObjectError is the error of one object, or of the whole cluster if Object is empty. It never
// contains a value of a Secret.
type ObjectError struct {
	Cluster          string   `json:"cluster"`
	Object           Ref      `json:"object"`
	Op               string   `json:"op"` // apply, delete, read inventory …
	Reason           Reason   `json:"reason"`
	Message          string   `json:"message"`
	Hint             string   `json:"hint,omitempty"`     // the next step for a person
	Source           string   `json:"source,omitempty"`   // file and line that declare the object
	Managers         []string `json:"managers,omitempty"` // Conflict: owners of the fields
	Fields           []string `json:"fields,omitempty"`   // Conflict, Invalid, Immutable
	Webhook          string   `json:"webhook,omitempty"`  // WebhookDenied: webhook or policy
	FailedDependency *Ref     `json:"because,omitempty"`  // SkippedDependency: the failed object
	Set              string   `json:"set,omitempty"`      // OwnedElsewhere: the owning set
	Err              error    `json:"-"`
}

func (e *ObjectError) Error() string {
	var b strings.Builder
	if e.Source != "" {
		fmt.Fprintf(&b, "%s: ", e.Source)
	}
	fmt.Fprintf(&b, "cluster %s: ", e.Cluster)
	if e.Object != (Ref{}) {
		fmt.Fprintf(&b, "%s: ", e.Object)
	}
	fmt.Fprintf(&b, "%s: %s: %s", e.Op, e.Reason, e.Message)
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

func (e *ObjectError) Unwrap() error { return e.Err }

// Errors are the errors of all objects of a run, the root cause first.
type Errors []*ObjectError

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.Is and errors.As examine each error.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// joinErrors sorts errors; it returns nil for none.
func joinErrors(all []*ObjectError) error {
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b *ObjectError) int {
		return cmp.Compare(slices.Index(reasonOrder, a.Reason), slices.Index(reasonOrder, b.Reason))
	})
	return Errors(all)
}

// ReasonOf returns the reason of the first ObjectError in an error, or Other.
func ReasonOf(err error) Reason {
	var all Errors
	if errors.As(err, &all) && len(all) > 0 {
		return all[0].Reason
	}
	var one *ObjectError
	if errors.As(err, &one) {
		return one.Reason
	}
	return ReasonOther
}

// IsTransient reports whether an error means that a cluster cannot answer now, not that the request
// is wrong. Such an error ends when the cluster recovers.
func IsTransient(err error) bool {
	switch ReasonOf(err) {
	case ReasonUnreachable, ReasonTimeout, ReasonCanceled:
		return true
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err)
}

// IsUnserved reports whether an API server does not serve the requested kind.
func IsUnserved(err error) bool {
	var noMatch *meta.NoKindMatchError
	return errors.As(err, &noMatch) || meta.IsNoMatchError(err) || ReasonOf(err) == ReasonKindNotServed
}
