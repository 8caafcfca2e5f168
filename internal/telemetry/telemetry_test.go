// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
)

// collector receives traces by gRPC and stores their bytes.
func collector(t *testing.T) (url string, got func() string) {
	t.Helper()
	var mu sync.Mutex
	var all strings.Builder
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		all.WriteString(r.URL.Path + " ")
		all.Write(body)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = w.Write(make([]byte, 5)) // an empty message
		w.Header().Set("Grpc-Status", "0")
	}))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server.Config.Protocols = protocols
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
}

func TestTracesAreSent(t *testing.T) {
	before := otel.GetTracerProvider()
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	url, got := collector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	end, err := Start(t.Context(), "the-service", "1.2.3")
	require.NoError(t, err)
	_, span := otel.Tracer("test").Start(t.Context(), "the-span")
	span.End()
	end() // sends the rest
	assert.Contains(t, got(), "/opentelemetry.proto.collector.trace.v1.TraceService/Export")
	for _, text := range []string{"the-service", "1.2.3", "the-span"} {
		assert.Contains(t, got(), text)
	}
}

// TestNothingIsSent checks that nothing is sent unless the environment asks for it.
func TestNothingIsSent(t *testing.T) {
	url, got := collector(t)
	for name, environment := range map[string]map[string]string{
		"no collector": {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
		"disabled":     {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SDK_DISABLED": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
			for k, v := range environment {
				t.Setenv(k, v)
			}
			end, err := Start(t.Context(), "s", "v")
			require.NoError(t, err)
			_, span := otel.Tracer("test").Start(t.Context(), "x")
			assert.False(t, span.SpanContext().IsValid())
			span.End()
			end()
			assert.Empty(t, got())
		})
	}
}
