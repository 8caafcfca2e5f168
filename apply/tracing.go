// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	headers "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// tracer makes the spans of this package: a run of a set, an object that is sent, a request. They
// contain names, never contents.
func tracer() trace.Tracer { return otel.Tracer("github.com/pergola-dev/pergola/apply") }

// startRunSpan starts the span of a run.
func (r *setRun) startRunSpan(ctx context.Context, what string) (context.Context, trace.Span) {
	return tracer().Start(ctx, what, trace.WithAttributes(
		attribute.String("pergola.cluster", r.cluster.name), attribute.String("pergola.set", r.set.Name), attribute.Int("pergola.objects", len(r.set.Objects))))
}

// startObjectSpan starts the span of an object that is sent.
func (r *setRun) startObjectSpan(ctx context.Context, ref Ref) (context.Context, func(outcome)) {
	ctx, span := tracer().Start(ctx, "apply object", trace.WithAttributes(attribute.String("k8s.object.api_version", ref.APIVersion), attribute.String("k8s.object.kind", ref.Kind),
		attribute.String("k8s.namespace.name", ref.Namespace), attribute.String("k8s.object.name", ref.Name)))
	return ctx, func(o outcome) {
		span.SetAttributes(attribute.String("pergola.action", string(o.action)))
		if o.err != nil {
			span.SetStatus(codes.Error, string(o.err.Reason))
		}
		span.End()
	}
}

// startRequestSpan passes the trace to the API server, which continues it.
func startRequestSpan(req *http.Request, cluster, verb string) (*http.Request, func(*http.Response, error)) {
	ctx, span := tracer().Start(req.Context(), "request", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("pergola.cluster", cluster), attribute.String("pergola.verb", verb), attribute.String("http.request.method", req.Method), attribute.String("url.path", req.URL.Path)))
	if span.SpanContext().IsValid() {
		req = req.Clone(ctx)
		otel.GetTextMapPropagator().Inject(ctx, headers.HeaderCarrier(req.Header))
	}
	return req, func(resp *http.Response, err error) {
		switch {
		case err != nil:
			span.SetStatus(codes.Error, "no answer")
		case resp != nil:
			span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
		}
		span.End()
	}
}
