// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pergola-dev/pergola/change/redact"
)

// objectErrorFor turns an error of a request into an ObjectError with its reason and next step.
func (c *Cluster) objectErrorFor(ref Ref, op string, err error) *ObjectError {
	var done *ObjectError
	if errors.As(err, &done) {
		return done
	}
	out := &ObjectError{Cluster: c.name, Object: ref, Op: op, Reason: ReasonOther, Err: err}
	if ref.GroupKind() == secretKind {
		out.Err = withoutValues(err)
	}
	out.Message = redact.Text(out.Err.Error())
	switch {
	case explainSchemaError(out, err):
	case c.explainConnection(out):
	case c.explainStatus(out):
	case meta.IsNoMatchError(out.Err):
		out.Reason = ReasonKindNotServed
		out.Message = fmt.Sprintf("the API server does not know %s %s", ref.APIVersion, ref.Kind)
		out.Hint = "install the CustomResourceDefinition of this kind first, or check apiVersion"
	}
	out.Hint = c.RewriteKubectl(out.Hint)
	return out
}

// RewriteKubectl makes the kubectl commands in a text address this cluster, whatever the current
// context of the reader is.
func (c *Cluster) RewriteKubectl(text string) string {
	if c == nil || c.kubectl == "" {
		return text
	}
	return strings.ReplaceAll(text, "kubectl ", c.kubectl+" ")
}

// RewriteKubectlOrNameCluster is RewriteKubectl for a text that does not name the cluster. If no
// kubectl flags for the cluster are known, it adds the name.
func (c *Cluster) RewriteKubectlOrNameCluster(text string) string {
	if c == nil {
		return text
	}
	return RewriteKubectlForCluster(c.kubectl, c.name, text)
}

// RewriteKubectlForCluster is RewriteKubectlOrNameCluster for a cluster given by name; kubectl is
// the command with the flags that address the cluster, if known.
func RewriteKubectlForCluster(kubectl, cluster, text string) string {
	if kubectl == "" || kubectl == "kubectl" {
		return strings.ReplaceAll(text, ": kubectl ", ", on cluster "+cluster+": kubectl ")
	}
	return strings.ReplaceAll(text, "kubectl ", kubectl+" ")
}

func (c *Cluster) explainConnection(e *ObjectError) bool {
	var (
		down    *UnreachableError
		verify  *tls.CertificateVerificationError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.Is(e.Err, context.Canceled):
		e.Reason, e.Message = ReasonCanceled, "interrupted before it was done"
		e.Hint = "run again to complete it"
	case errors.Is(e.Err, context.DeadlineExceeded):
		e.Reason = ReasonTimeout
		e.Hint = "run again, or allow more time"
	case errors.As(e.Err, &invalid) && invalid.Reason == x509.Expired:
		e.Reason = ReasonCertificateExpired
		e.Hint = "the certificate of the API server has expired: renew it"
	case errors.As(e.Err, &verify):
		e.Reason = ReasonUnreachable
		e.Hint = "the certificate of the API server does not match the CA in the kubeconfig"
	case errors.As(e.Err, &down):
		e.Reason, e.Message = ReasonUnreachable, redact.Text(down.Error())
		e.Hint = "check that the API server runs, and check its address and the network to it"
	default:
		return false
	}
	return true
}

func (c *Cluster) explainStatus(e *ObjectError) bool {
	status, ok := statusOf(e.Err)
	if !ok {
		return false
	}
	switch {
	case explainWebhook(e, status):
	case hasCause(status, "NamespaceTerminating"):
		e.Reason = ReasonTerminatingNamespace
		e.Hint = "the namespace is being deleted: wait until it no longer exists, then run again"
	case apierrors.IsUnauthorized(e.Err):
		c.explainUnauthorized(e)
	case apierrors.IsForbidden(e.Err):
		explainForbidden(e)
	case hasCause(status, metav1.CauseTypeFieldManagerConflict):
		explainConflict(e, status)
	case apierrors.IsInvalid(e.Err):
		explainInvalid(e, status)
	case apierrors.IsBadRequest(e.Err):
		e.Reason = ReasonInvalid
		e.Hint = "correct the object"
	case apierrors.IsNotFound(e.Err):
		explainNotFound(e, status)
	case apierrors.IsTimeout(e.Err), apierrors.IsServerTimeout(e.Err), apierrors.IsTooManyRequests(e.Err):
		e.Reason = ReasonTimeout
		e.Hint = "the API server is overloaded or its storage is slow; run again"
	}
	return true
}

func statusOf(err error) (metav1.Status, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return metav1.Status{}, false
	}
	return status.Status(), true
}

func hasCause(s metav1.Status, cause metav1.CauseType) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == cause })
}

var (
	webhookPattern         = regexp.MustCompile(`admission webhook "([^"]+)" denied|failed calling webhook "([^"]+)"|ValidatingAdmissionPolicy '([^']+)'`)
	forbiddenByRBACPattern = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)
	managerPattern         = regexp.MustCompile(`conflict with "([^"]+)"`)
)

func explainWebhook(e *ObjectError, s metav1.Status) bool {
	m := webhookPattern.FindStringSubmatch(s.Message)
	if m == nil {
		return false
	}
	e.Reason, e.Webhook = ReasonWebhookDenied, m[1]+m[2]+m[3]
	e.Hint = fmt.Sprintf("%s does not admit the object: follow its message", e.Webhook)
	if isPolicyWithoutParameters(s.Message) {
		e.Hint = fmt.Sprintf("define the kind from which %s takes its parameters; if it was defined just now, the API server knows it within 30s: run again", e.Webhook)
	}
	if m[2] != "" {
		e.Hint = fmt.Sprintf("%s does not answer: check the Service and the pods behind it", e.Webhook)
	}
	return true
}

func (c *Cluster) explainUnauthorized(e *ObjectError) {
	e.Reason = ReasonUnauthorized
	e.Hint = "the API server rejects the credentials in the kubeconfig: renew them"
	if c.config.Transport != nil {
		e.Hint = "the API server rejects the credentials: their issuer renews them, also at the end of a running rotation, and they are read again automatically"
	}
	block, _ := pem.Decode(c.config.CertData)
	if block == nil {
		return
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err == nil && c.clock.Now().After(cert.NotAfter) {
		e.Reason = ReasonCertificateExpired
		e.Hint = fmt.Sprintf("the client certificate of %q expired on %s: issue a new kubeconfig",
			cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.DateOnly))
	}
}

func explainConflict(e *ObjectError, s metav1.Status) {
	e.Reason = ReasonConflict
	for _, cause := range s.Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		e.Fields = append(e.Fields, strings.TrimPrefix(cause.Field, "."))
		if m := managerPattern.FindStringSubmatch(cause.Message); m != nil && !slices.Contains(e.Managers, m[1]) {
			e.Managers = append(e.Managers, m[1])
		}
	}
	e.Message = fmt.Sprintf("%s is owned by %s", strings.Join(e.Fields, ", "), strings.Join(e.Managers, ", "))
	e.Hint = conflictHint(e.Object, "force")
}

// conflictHint says how to resolve a conflict, with the command that shows the owners.
func conflictHint(ref Ref, force string) string {
	return fmt.Sprintf("remove the field from the declaration, let the other manager give it up (field owners: kubectl get %s -o yaml --show-managed-fields), or %s",
		KubectlName(ref), force)
}

func explainInvalid(e *ObjectError, s metav1.Status) {
	e.Reason = ReasonInvalid
	e.Hint = "correct the object"
	if s.Details == nil {
		return
	}
	var said []string
	dumped := false
	for _, cause := range s.Details.Causes {
		if cause.Field != "" && !slices.Contains(e.Fields, cause.Field) {
			e.Fields = append(e.Fields, cause.Field)
		}
		text := withoutDump(cause.Message)
		dumped = dumped || text != cause.Message
		said = append(said, cause.Field+": "+text)
	}
	if dumped {
		e.Message = redact.Text(strings.Join(said, "; "))
	}
	if len(e.Fields) > 0 {
		e.Hint = "correct " + strings.Join(e.Fields, ", ") + " in the declaration"
	}
	if isImmutable(e.Err) {
		e.Reason = ReasonImmutable
		e.Hint = immutableHint("")
	}
}

// immutableHint says how to handle a change that the API never allows; how tells the way to allow a
// recreation.
func immutableHint(how string) string {
	return "the field cannot change on a live object: keep its value, or let the object be recreated" + how +
		"; if someone recreated it manually, delete it: the next run creates it as declared"
}

// minDumpLength is the length, in bytes, from which a value in a message counts as the dump of a
// whole structure, which no one reads.
const minDumpLength = 200

// withoutDump returns a validation message without its value if that is long: "Invalid value: {…}:
// field is immutable".
func withoutDump(message string) string {
	what, rest, found := strings.Cut(message, ": ")
	i := strings.LastIndex(rest, ": ")
	if !found || i < minDumpLength {
		return message
	}
	return what + ": " + rest[i+2:]
}

// The server reports an object that does not fit its schema with code 500 and no details.
var (
	schemaErrorPattern     = regexp.MustCompile(`^failed to create typed patch object \([^)]*\): (?:errors:\s*)?`)
	schemaFaultPattern     = regexp.MustCompile(`^\s*\.(.+?): (expected [^,\n]+|field not declared in schema|duplicate entries for key)(.*)$`)
	dumpedValuePattern     = regexp.MustCompile(`&value\.valueUnstructured\{Value:(.*)\}|&\{(.*)\}$`)
	conversionErrorPattern = regexp.MustCompile(`^failed to convert new object \([^)]*\) to proper version: unable to convert [^:]*: `)
)

// explainSchemaError explains a refused apply with fields that the schema does not know or has with
// another type. For a Secret it reports only the first field, without the value.
func explainSchemaError(e *ObjectError, err error) bool {
	status, ok := statusOf(err)
	if !ok {
		return false
	}
	secret := e.Object.GroupKind() == secretKind
	if form := conversionErrorPattern.FindString(status.Message); form != "" {
		e.Reason, e.Hint = ReasonInvalid, "a value has a form that its field does not allow: correct it"
		if !secret {
			e.Message = redact.Text(strings.TrimPrefix(status.Message, form))
		}
		return true
	}
	head := schemaErrorPattern.FindString(status.Message)
	if head == "" {
		return false
	}
	var said []string
	for _, line := range strings.Split(strings.TrimPrefix(status.Message, head), "\n") {
		m := schemaFaultPattern.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		e.Fields = append(e.Fields, m[1])
		if secret {
			said = append(said, m[1]+": "+m[2])
			break
		}
		said = append(said, m[1]+": "+m[2]+dumpedValuePattern.ReplaceAllString(m[3], "$1$2"))
	}
	if len(said) == 0 {
		return false
	}
	e.Reason, e.Message = ReasonInvalid, redact.Text(strings.Join(said, "; "))
	e.Hint = "correct " + strings.Join(e.Fields, ", ") + " in the declaration"
	return true
}

func explainNotFound(e *ObjectError, s metav1.Status) {
	e.Reason = ReasonNotFound
	switch {
	case s.Details != nil && s.Details.Kind == "namespaces" && e.Object.Kind != "Namespace":
		e.Hint = fmt.Sprintf("create the Namespace %s first", e.Object.Namespace)
	case e.Op == "apply":
		e.Reason = ReasonKindNotServed
		e.Hint = "the API server does not serve this kind: check its CustomResourceDefinition or APIService"
	}
}

// immutablePattern matches validation messages about a field that must not change. It is for the
// causes of an Invalid status, never for the whole message: a typo in the same object must not look
// immutable.
var immutablePattern = regexp.MustCompile(`(?i)immutable|may not change once set|may not be changed in an update|` +
	`cannot change roleref|updates to .* (are|is) forbidden|forbidden: updates to|can not be unset|may not be unset|cannot be changed`)

// isImmutable reports whether an update was rejected only because of immutable fields.
func isImmutable(err error) bool {
	status, ok := statusOf(err)
	if !ok || !apierrors.IsInvalid(err) || status.Details == nil || len(status.Details.Causes) == 0 {
		return false
	}
	for _, cause := range status.Details.Causes {
		if !immutablePattern.MatchString(cause.Message) {
			return false
		}
	}
	return true
}
