// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// postReview posts a review to a handler and returns the response.
func postReview(t *testing.T, handler http.Handler, path, version string, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionReview {
	t.Helper()
	body, err := json.Marshal(&admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/" + version, Kind: "AdmissionReview"}, Request: request})
	require.NoError(t, err)
	return postBody(t, handler, path, body)
}

func postBody(t *testing.T, handler http.Handler, path string, body []byte) *admissionv1.AdmissionReview {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	review := &admissionv1.AdmissionReview{}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), review), w.Body.String())
	require.NotNil(t, review.Response)
	return review
}

func podRequest(raw string) *admissionv1.AdmissionRequest {
	request := &admissionv1.AdmissionRequest{UID: "u", Kind: podKind, Operation: admissionv1.Create, Namespace: "ns", Name: "a"}
	request.Object.Raw = []byte(raw)
	return request
}

func TestReviews(t *testing.T) {
	handler, err := New(t.Context(), Options{Webhooks: Webhooks{SeccompProfile: Switch{Enabled: true}}})
	require.NoError(t, err)
	// An API server uses the first version of a configuration that it knows, also for the response.
	for _, version := range []string{"v1beta1", "v1"} {
		review := postReview(t, handler, PathSeccompProfile+"?timeout=5s", version, podRequest(`{"metadata":{"future":1},"spec":{"future":{"a":1},"containers":[{"name":"a","future":2}]}}`))
		assert.Equal(t, "admission.k8s.io/"+version, review.APIVersion)
		assert.Equal(t, "u", string(review.Response.UID))
		require.True(t, review.Response.Allowed)
		// Nothing else changes, not even unknown fields.
		assert.JSONEq(t, `[{"op":"add","path":"/spec/securityContext","value":{"seccompProfile":{"type":"RuntimeDefault"}}}]`, string(review.Response.Patch))
	}
	unchanged := postReview(t, handler, PathSeccompProfile, "v1", podRequest(`{"spec":{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}}`))
	assert.True(t, unchanged.Response.Allowed)
	assert.Empty(t, unchanged.Response.Patch)

	for name, c := range map[string]struct {
		change  func(*admissionv1.AdmissionRequest)
		allowed bool
		message string
	}{
		"another kind":      {func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "Node" }, false, "this webhook is for objects of kind Pod, but the request is about Node of /v1"},
		"a subresource":     {func(r *admissionv1.AdmissionRequest) { r.SubResource = "resize" }, true, ""},
		"another operation": {func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Connect }, true, ""},
		"no object":         {func(r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }, false, "no object"},
		"no pod":            {func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`{"spec":[]}`) }, false, "cannot be read as Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			request := podRequest("{}")
			c.change(request)
			review := postReview(t, handler, PathSeccompProfile, "v1", request)
			assert.Equal(t, c.allowed, review.Response.Allowed)
			assert.Empty(t, review.Response.Patch)
			if !c.allowed {
				assert.Contains(t, review.Response.Result.Message, c.message)
				assert.Equal(t, int32(http.StatusBadRequest), review.Response.Result.Code)
			}
		})
	}
}

func TestInvalidRequests(t *testing.T) {
	handler, err := New(t.Context(), Options{Webhooks: Webhooks{SeccompProfile: Switch{Enabled: true}}})
	require.NoError(t, err)
	for _, path := range []string{"/", PathPodSchedulerName, "/validate-extensions-gardener-cloud-v1alpha1-worker"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("{}")))
		assert.Equal(t, http.StatusNotFound, w.Code, "not turned on: "+path)
	}
	for name, body := range map[string][]byte{
		"nothing": nil, "no JSON": []byte("{"), "too large": append([]byte(`{"x":"`), bytes.Repeat([]byte("a"), maxRequest)...),
	} {
		review := postBody(t, handler, PathSeccompProfile, body)
		assert.False(t, review.Response.Allowed, name)
		assert.GreaterOrEqual(t, review.Response.Result.Code, int32(400), name)
	}
}

// TestPanicsAndFailures checks that a panic becomes an error without content of the object, and
// that the next request works.
func TestPanicsAndFailures(t *testing.T) {
	var log bytes.Buffer
	o := Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
	const secret = "s3cr3t"
	var fault error
	handler, err := o.handler("/webhooks/test", newMutating(podKind, func(context.Context, *admissionv1.AdmissionRequest, *corev1.Pod) error {
		if fault == nil {
			panic(secret)
		}
		return fault
	}))
	require.NoError(t, err)
	for range 2 {
		response := postReview(t, handler, "/webhooks/test", "v1", podRequest("{}")).Response
		assert.False(t, response.Allowed)
		assert.Equal(t, int32(http.StatusInternalServerError), response.Result.Code)
		assert.Equal(t, "u", string(response.UID))
		assert.Contains(t, response.Result.Message, "a fault of Pergola")
		assert.NotContains(t, response.Result.Message+log.String(), secret)
		assert.Contains(t, log.String(), "handler_test.go", "the log says where")
	}
	for want, err := range map[int32]error{
		http.StatusInternalServerError: errors.New("down"), http.StatusForbidden: denyForbidden("no"), http.StatusUnprocessableEntity: fmt.Errorf("looking: %w", denyInvalid("no")),
	} {
		fault = err
		response := postReview(t, handler, "/webhooks/test", "v1", podRequest("{}")).Response
		assert.False(t, response.Allowed)
		assert.Equal(t, want, response.Result.Code)
	}
}

// TestTimeout checks that the timeout of the API server applies.
func TestTimeout(t *testing.T) {
	handler, err := Options{Log: slog.New(slog.DiscardHandler)}.handler("/webhooks/test", func(ctx context.Context, _ *admissionv1.AdmissionRequest) (ctrladmission.Response, error) {
		<-ctx.Done()
		return ctrladmission.Response{}, ctx.Err()
	})
	require.NoError(t, err)
	response := postReview(t, handler, "/webhooks/test?timeout=1ms", "v1", podRequest("{}")).Response
	assert.False(t, response.Allowed)
	assert.Equal(t, int32(http.StatusGatewayTimeout), response.Result.Code)
	for query, want := range map[string]string{"": "10s", "?timeout=2s": "2s", "?timeout=1h": "30s", "?timeout=-1s": "10s", "?timeout=x": "10s"} {
		assert.Equal(t, want, timeoutOf(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+query, nil)).String())
	}
}
