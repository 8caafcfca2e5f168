// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	headers "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/client-go/rest"
)

// TestTraces: a run is one trace, down to the requests, which pass it to the API server. No span
// contains the contents of an object.
func TestTraces(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider, text := otel.GetTracerProvider(), otel.GetTextMapPropagator()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	otel.SetTextMapPropagator(headers.TraceContext{})
	t.Cleanup(func() { otel.SetTracerProvider(provider); otel.SetTextMapPropagator(text) })

	f := newFixture(t)
	var mu sync.Mutex
	parents := map[string]bool{}
	config := rest.CopyConfig(server.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			parents[req.Header.Get("Traceparent")] = true
			mu.Unlock()
			return next.RoundTrip(req)
		})
	})
	c, err := newCluster("traced", config, ClusterOptions{})
	require.NoError(t, err)
	defer c.Close()
	secret := f.object(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, stringData: {word: hidden-in-a-secret}}`)
	wrong := f.object(`{apiVersion: v1, kind: Service, metadata: {name: w, namespace: NS}, spec: {ports: [{port: 0}]}}`)
	_, err = f.e.Apply(f.ctx, c, f.set(f.configMap("a", "hidden-in-a-configmap"), secret, wrong), f.inv, ApplyOptions{})
	require.Error(t, err)

	spans := map[string][]trace.ReadOnlySpan{}
	for _, s := range recorder.Ended() {
		spans[s.Name()] = append(spans[s.Name()], s)
		for _, a := range s.Attributes() {
			assert.NotContains(t, a.Value.String(), "hidden-in")
		}
	}
	require.Len(t, spans["apply set"], 1)
	root := spans["apply set"][0]
	assert.Equal(t, f.ns+"/set", attributeOf(root, "pergola.set"))
	assert.Equal(t, "traced", attributeOf(root, "pergola.cluster"))
	require.Len(t, spans["apply object"], 3)
	actions := map[string]string{}
	objects := map[string]bool{}
	for _, s := range spans["apply object"] {
		assert.Equal(t, root.SpanContext().SpanID(), s.Parent().SpanID())
		actions[attributeOf(s, "k8s.object.kind")] = attributeOf(s, "pergola.action")
		objects[s.SpanContext().SpanID().String()] = true
		if attributeOf(s, "k8s.object.kind") == "Service" {
			assert.Equal(t, codes.Error, s.Status().Code)
			assert.Equal(t, string(ReasonInvalid), s.Status().Description)
		}
	}
	assert.Equal(t, map[string]string{"ConfigMap": string(Created), "Secret": string(Created), "Service": string(Failed)}, actions)
	sent := 0
	for _, s := range spans["request"] {
		assert.NotContains(t, attributeOf(s, "url.path"), "?")
		if attributeOf(s, "pergola.verb") != "patch-apply" || attributeOf(s, "pergola.cluster") != "traced" {
			continue // lists belong to a cache that all runs share
		}
		sent++
		assert.True(t, objects[s.Parent().SpanID().String()])
		assert.Equal(t, root.SpanContext().TraceID(), s.SpanContext().TraceID())
		assert.True(t, parents["00-"+s.SpanContext().TraceID().String()+"-"+s.SpanContext().SpanID().String()+"-01"], "the API server is told")
	}
	assert.Equal(t, 3, sent)
}

func attributeOf(s trace.ReadOnlySpan, key string) string {
	for _, a := range s.Attributes() {
		if a.Key == attribute.Key(key) {
			return a.Value.String()
		}
	}
	return ""
}
