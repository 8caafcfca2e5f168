// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
)

// endpointVariables are the variables of the OpenTelemetry specification that name a collector. The
// libraries read further ones (headers, certificates, sampling).
var endpointVariables = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}

// Start exports traces by gRPC to the collector that the environment names; without one it exports
// nothing. The returned function sends the rest within three seconds.
func Start(ctx context.Context, service, version string) (end func(), err error) {
	named := false
	for _, name := range endpointVariables {
		named = named || os.Getenv(name) != ""
	}
	if !named || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return func() {}, nil
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("preparing traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName(service), semconv.ServiceVersion(version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("preparing traces: %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		_ = provider.Shutdown(ctx) // an error can no longer be reported
	}, nil
}
