// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/webhook/admission/metrics"

	"github.com/pergola-dev/pergola/controllers/webhook/admission"
)

const (
	// maxRequest is the maximum request size in bytes: two objects as large as etcd accepts, as
	// JSON, and their review.
	maxRequest = 7 << 20
	// defaultTimeout is for requests without a timeout, maxTimeout is the longest that the API
	// server accepts.
	defaultTimeout = 10 * time.Second
	maxTimeout     = 30 * time.Second
)

// Paths of the webhooks; a path for extension objects is like
// /validate-extensions-gardener-cloud-v1alpha1-worker.
const (
	PathCRDDeletionProtection         = "/webhooks/validate-crd-deletion"
	PathEndpointSliceHints            = "/webhooks/endpoint-slice-hints"
	PathHighAvailabilityConfig        = "/webhooks/high-availability-config"
	PathKubernetesServiceHost         = "/webhooks/kubernetes-service-host"
	PathPodKubeAPIServerLoadBalancing = "/webhooks/pod-kube-apiserver-load-balancing"
	PathPodSchedulerName              = "/webhooks/default-pod-scheduler-name"
	PathPodTopologySpreadConstraints  = "/webhooks/pod-topology-spread-constraints"
	PathProjectedTokenMount           = "/webhooks/mount-projected-service-account-token"
	PathSeccompProfile                = "/webhooks/seccomp-profile"
	PathSystemComponentsConfig        = "/webhooks/system-components-config"
	PathVPAInPlaceUpdates             = "/webhooks/vpa-in-place-updates"
)

// webhookFunc handles a request. An error is not a verdict about the object, unless it is a denial.
type webhookFunc func(context.Context, *admissionv1.AdmissionRequest) (ctrladmission.Response, error)

// New returns the handler of the enabled webhooks. It fails if settings are invalid or a reader is
// missing.
func New(ctx context.Context, o Options) (http.Handler, error) {
	handlers, err := o.handlers(ctx)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, ok := handlers[r.URL.Path]
		if !ok {
			http.Error(w, "this path has no webhook, or its webhook is disabled", http.StatusNotFound)
			return
		}
		handler.ServeHTTP(w, r)
	}), nil
}

// Add registers the enabled webhooks with the webhook server of a manager.
func Add(ctx context.Context, mgr manager.Manager, o Options) error {
	handlers, err := o.handlers(ctx)
	if err != nil {
		return err
	}
	for path, handler := range handlers {
		mgr.GetWebhookServer().Register(path, handler)
	}
	return nil
}

// handlers returns the webhooks by path.
func (o Options) handlers(ctx context.Context) (map[string]http.Handler, error) {
	if err := o.Webhooks.Validate(); err != nil {
		return nil, err
	}
	switch {
	case o.Webhooks.CRDDeletionProtection.Enabled && o.Source == nil:
		return nil, errors.New("protection from deletion needs a reader of the source cluster")
	case o.isReadingTarget() && o.Target == nil:
		return nil, errors.New("the webhooks for workload need a reader of the target cluster")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Webhooks = o.Webhooks.withDefaults()
	answers := o.enabledWebhooks()
	if o.Webhooks.ExtensionValidation.Enabled {
		rules, err := admission.New(ctx, admission.Options{Log: o.Log})
		if err != nil {
			return nil, fmt.Errorf("preparing the validation of extension objects: %w", err)
		}
		for _, kind := range validatedKinds() {
			answers[kind.path()] = newValidating(kind, rules.Validate)
		}
	}
	handlers := make(map[string]http.Handler, len(answers))
	for path, respond := range answers {
		handler, err := o.handler(path, respond)
		if err != nil {
			return nil, err
		}
		handlers[path] = handler
	}
	return handlers, nil
}

// isReadingTarget reports whether an enabled webhook reads the target cluster.
func (o Options) isReadingTarget() bool {
	return o.Webhooks.HighAvailabilityConfig.Enabled || o.Webhooks.ProjectedTokenMount.Enabled || o.Webhooks.SystemComponentsConfig.Enabled || o.Webhooks.PodKubeAPIServerLoadBalancing.Enabled
}

// enabledWebhooks returns the enabled webhooks by path, without those of extension objects.
func (o Options) enabledWebhooks() map[string]webhookFunc {
	target := targetReader{cached: o.Target, live: o.Live}
	all := map[string]webhookFunc{}
	for _, webhook := range []struct {
		enabled bool
		path    string
		answer  webhookFunc
	}{
		{o.Webhooks.CRDDeletionProtection.Enabled, PathCRDDeletionProtection, deletionProtection{o.Source}.respond},
		{o.Webhooks.EndpointSliceHints.Enabled, PathEndpointSliceHints, newMutating(endpointSliceKind, hintEndpoints)},
		{o.Webhooks.HighAvailabilityConfig.Enabled, PathHighAvailabilityConfig, highAvailability{o.Webhooks.HighAvailabilityConfig, target}.respond},
		{o.Webhooks.KubernetesServiceHost.Enabled, PathKubernetesServiceHost, newMutating(podKind, o.Webhooks.KubernetesServiceHost.mutate)},
		{o.Webhooks.PodKubeAPIServerLoadBalancing.Enabled, PathPodKubeAPIServerLoadBalancing, newMutating(podKind, loadBalancing{target}.mutate)},
		{o.Webhooks.PodSchedulerName.Enabled, PathPodSchedulerName, newMutating(podKind, o.Webhooks.PodSchedulerName.mutate)},
		{o.Webhooks.PodTopologySpreadConstraints.Enabled, PathPodTopologySpreadConstraints, newMutating(podKind, spreadRevisions)},
		{o.Webhooks.ProjectedTokenMount.Enabled, PathProjectedTokenMount, newMutating(podKind, tokenMount{o.Webhooks.ProjectedTokenMount, target}.mutate)},
		{o.Webhooks.SeccompProfile.Enabled, PathSeccompProfile, newMutating(podKind, defaultSeccompProfile)},
		{o.Webhooks.SystemComponentsConfig.Enabled, PathSystemComponentsConfig, newMutating(podKind, systemComponents{o.Webhooks.SystemComponentsConfig, target}.mutate)},
		{o.Webhooks.VPAInPlaceUpdates.Enabled, PathVPAInPlaceUpdates, newMutating(verticalPodAutoscalerKind, setInPlaceUpdates)},
	} {
		if webhook.enabled {
			all[webhook.path] = webhook.answer
		}
	}
	return all
}

// handler serves a webhook over HTTP, with the metrics of controller-runtime.
func (o Options) handler(path string, respond webhookFunc) (http.Handler, error) {
	hook := &ctrladmission.Webhook{Handler: ctrladmission.HandlerFunc(func(ctx context.Context, request ctrladmission.Request) ctrladmission.Response {
		return o.respond(ctx, path, &request.AdmissionRequest, respond)
	})}
	handler, err := ctrladmission.StandaloneWebhook(hook, ctrladmission.StandaloneOptions{Logger: logr.FromSlogHandler(o.Log.Handler()), MetricsPath: path})
	if err != nil {
		return nil, fmt.Errorf("preparing the webhook at %s: %w", path, err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeoutOf(r))
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
		handler.ServeHTTP(w, r.WithContext(ctx))
	}), nil
}

// respond always returns a response, and logs denials and failures.
func (o Options) respond(ctx context.Context, path string, request *admissionv1.AdmissionRequest, respond webhookFunc) (response ctrladmission.Response) {
	log := o.Log.With("webhook", path, "uid", string(request.UID), "operation", string(request.Operation), "group", request.Kind.Group,
		"kind", request.Kind.Kind, "namespace", request.Namespace, "name", request.Name)
	defer func() {
		if p := recover(); p != nil {
			ctrlmetrics.WebhookPanics.WithLabelValues().Inc()
			// The value may quote the object: log its type and the stack only.
			log.Error("a request caused a panic", "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			response = errorResponse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the webhook failed on this request: this is a fault of Pergola; see its log")
		}
	}()
	response, err := respond(ctx, request)
	var no *denial
	switch {
	case errors.As(err, &no):
		response = errorResponse(no.code, no.reason, no.message)
		log.Info("denied", "reason", string(no.reason))
	case err != nil && ctx.Err() != nil:
		log.Error("a request was not answered in time")
		response = errorResponse(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "the webhook did not answer in time: "+err.Error())
	case err != nil:
		log.Error("a request could not be answered", "error", err.Error())
		response = errorResponse(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
	case !response.Allowed:
		log.Info("denied")
	}
	return response
}

// timeoutOf returns the timeout that the API server sends as a parameter.
func timeoutOf(r *http.Request) time.Duration {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		return defaultTimeout
	}
	return min(timeout, maxTimeout)
}

// denial rejects a request, or reports that its sender made it unanswerable.
type denial struct {
	code    int32
	reason  metav1.StatusReason
	message string
}

func (d *denial) Error() string { return d.message }

// denyInvalid returns a denial for the content of an object.
func denyInvalid(format string, args ...any) error {
	return &denial{http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, fmt.Sprintf(format, args...)}
}

// denyForbidden returns a denial for the state of related objects.
func denyForbidden(format string, args ...any) error {
	return &denial{http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(format, args...)}
}

// denyBadRequest returns a denial of a request that does not fit the webhook.
func denyBadRequest(format string, args ...any) error {
	return &denial{http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf(format, args...)}
}

func errorResponse(code int32, reason metav1.StatusReason, message string) ctrladmission.Response {
	return ctrladmission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message},
	}}
}
