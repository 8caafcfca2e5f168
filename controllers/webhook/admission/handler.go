// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/schemas"
)

const (
	// PathValidate is the path of the validating webhook.
	PathValidate = "/validate"
	// PathDefault is the path of the mutating webhook.
	PathDefault = "/default"

	// findingsCacheSize is the number of objects whose findings are cached, in about 2 MiB.
	findingsCacheSize = 1000

	// maxRequest is the largest request in bytes. etcd takes objects of 1.5 MiB, and a request
	// holds two at most.
	maxRequest = 8 << 20
	// defaultTimeout applies to requests without a timeout; maxTimeout is the API server's maximum.
	defaultTimeout = 10 * time.Second
	maxTimeout     = 30 * time.Second
)

// Options configure a Handler.
type Options struct {
	// Gardens lists the existing Gardens; nil disables the rules that need them.
	Gardens Gardens
	// ObjectLister reads the virtual garden for mutations and rules across the landscape; nil
	// disables both.
	ObjectLister ObjectLister
	// ExtraResponders contains answers for further paths.
	ExtraResponders map[string]Responder
	// Log gets a line for each denied or failed request, with the object's name and the rules, but
	// never contents. The default is none.
	Log *slog.Logger
	// Clock measures requests, and decides which versions of a cloud profile have expired; the
	// default is the real one.
	Clock clock.PassiveClock
}

// Handler answers AdmissionReviews (admission.k8s.io/v1).
type Handler struct {
	gardens      Gardens
	objectLister ObjectLister
	extraAnswers map[string]Responder
	log          *slog.Logger
	clock        clock.PassiveClock
	metrics      *metrics
	defaults     *defaulter
	// slots limits concurrent validations: CUE needs memory and cannot be interrupted.
	slots    chan struct{}
	validate func(context.Context, []schemas.Input, schemas.Options) ([]schemas.Violation, error)
}

// New returns a Handler. It fails if the schemas or API types of this program are broken.
func New(ctx context.Context, opts Options) (*Handler, error) {
	defaults, err := newDefaulter()
	if err != nil {
		return nil, err
	}
	h := &Handler{
		gardens: opts.Gardens, objectLister: opts.ObjectLister, extraAnswers: opts.ExtraResponders, log: opts.Log, clock: opts.Clock, metrics: newMetrics(), defaults: defaults,
		slots: make(chan struct{}, 2*runtime.GOMAXPROCS(0)),
	}
	// Objects share most parts, and most changes leave most of an object unchanged.
	cache := schemas.NewCache(findingsCacheSize)
	h.validate = func(ctx context.Context, inputs []schemas.Input, opts schemas.Options) ([]schemas.Violation, error) {
		opts.Cache = cache
		return schemas.Validate(ctx, inputs, opts)
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.clock == nil {
		h.clock = clock.RealClock{}
	}
	// The first call loads the schemas, which takes longer than all others.
	if _, err := schemas.Validate(ctx, nil, schemas.Options{}); err != nil {
		return nil, fmt.Errorf("reading the schemas: %w", err)
	}
	return h, nil
}

// Responder handles a request. A refusal that is not a verdict about the object is an error.
type Responder func(context.Context, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

// Metrics returns the request metrics, for a server that also serves others.
func (h *Handler) Metrics() prometheus.Gatherer { return h.metrics.registry }

// Validate answers whether a change is allowed, for a server that decodes AdmissionReviews itself
// and recovers from panics. It returns when the context ends.
func (h *Handler) Validate(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	response, err := h.respondWithin(ctx, request, h.respondToValidation)
	if err != nil {
		return errorResponse(err)
	}
	return response
}

// ServeHTTP answers POST /validate, POST /default and the paths in Options.More.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var respond Responder
	switch r.URL.Path {
	case PathValidate:
		respond = h.respondToValidation
	case PathDefault:
		respond = h.respondToDefaulting
	default:
		respond = h.extraAnswers[r.URL.Path]
	}
	if respond == nil {
		http.Error(w, fmt.Sprintf("nothing is served at this path; use %s or %s", PathValidate, PathDefault), http.StatusNotFound)
		return
	}
	started := h.clock.Now()
	seen := observation{webhook: strings.TrimPrefix(r.URL.Path, "/"), result: resultError}
	defer func() {
		if p := recover(); p != nil {
			h.metrics.countPanic()
			h.log.Error("a request caused a panic", "webhook", seen.webhook, "kind", seen.kind, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			http.Error(w, "the webhook failed on this request: this is a fault of Pergola; see its log", http.StatusInternalServerError)
		}
		h.metrics.observe(seen, h.clock.Since(started))
	}()
	review, failure := readReview(w, r)
	if failure != nil {
		h.log.Warn("a request is malformed", "webhook", seen.webhook, "reason", failure.reason)
		http.Error(w, failure.message, failure.code)
		return
	}
	request := review.Request
	seen.kind, seen.operation = kindLabel(request), operationLabel(request)
	ctx, cancel := context.WithTimeout(r.Context(), timeoutOf(r))
	defer cancel()
	response, err := h.respondWithin(ctx, request, respond)
	if err != nil {
		response = errorResponse(err)
		if ctx.Err() != nil {
			h.log.Error("a request was not answered in time", logAttributes(seen, request, h.clock.Since(started))...)
			http.Error(w, "the object could not be checked in time: "+ctx.Err().Error(), http.StatusServiceUnavailable)
			return
		}
		h.log.Error("a request could not be answered", append(logAttributes(seen, request, h.clock.Since(started)), "code", response.Result.Code, "reason", loggableReason(err))...)
	} else {
		seen.result = resultAllowed
		if !response.Allowed {
			seen.result = resultDenied
			h.log.Info("denied", append(logAttributes(seen, request, h.clock.Since(started)), "rules", denyingRules(response))...)
		}
	}
	if err := writeReview(w, review, response); err != nil {
		h.log.Warn("an answer could not be sent", append(logAttributes(seen, request, h.clock.Since(started)), "error", err.Error())...)
	}
}

// responderResult is the result of a request's goroutine.
type responderResult struct {
	response   *admissionv1.AdmissionResponse
	err        error
	panicValue any
	stack      []byte
}

// respondWithin returns when the context ends. CUE cannot be interrupted, so the goroutine
// continues without a reader and holds its slot until it ends.
func (h *Handler) respondWithin(ctx context.Context, request *admissionv1.AdmissionRequest, respond Responder) (*admissionv1.AdmissionResponse, error) {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := make(chan responderResult, 1)
	go func() {
		var out responderResult
		defer func() {
			if p := recover(); p != nil {
				out.panicValue, out.stack = p, debug.Stack()
			}
			<-h.slots
			done <- out
		}()
		out.response, out.err = respond(ctx, request)
	}()
	select {
	case out := <-done:
		if out.panicValue != nil {
			h.log.Error("checking an object failed", "stack", string(out.stack))
			panic(out.panicValue)
		}
		return out.response, out.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// timeoutOf returns the timeout that the API server sends as a parameter.
func timeoutOf(r *http.Request) time.Duration {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		return defaultTimeout
	}
	return min(timeout, maxTimeout)
}

// loggableReason returns the loggable part of an error: errors other than look-ups may quote the
// object.
func loggableReason(err error) string {
	var lookup lookupError
	var bad *requestError
	switch {
	case errors.As(err, &lookup):
		return lookup.Error()
	case errors.As(err, &bad):
		return "the request is inconsistent; see the answer"
	}
	return "the rules cannot be checked; see the answer"
}

// logAttributes returns log attributes of a request; the object's only content is its name.
func logAttributes(seen observation, request *admissionv1.AdmissionRequest, took time.Duration) []any {
	return []any{
		"webhook", seen.webhook, "uid", string(request.UID), "operation", seen.operation, "group", request.Kind.Group, "kind", request.Kind.Kind,
		"namespace", request.Namespace, "name", request.Name, "seconds", took.Seconds(),
	}
}
