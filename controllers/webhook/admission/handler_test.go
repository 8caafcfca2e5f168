// SPDX-License-Identifier: Apache-2.0

package admission

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
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pergola-dev/pergola/schemas"
)

// fakeGardens are the Gardens of a test, or the error of listing them.
type fakeGardens struct {
	names []string
	err   error
}

func (g fakeGardens) FieldNames(context.Context) ([]string, error) { return g.names, g.err }

func newHandler(t *testing.T, opts Options) *Handler {
	t.Helper()
	h, err := New(t.Context(), opts)
	require.NoError(t, err)
	return h
}

// newReview returns the review that an API server sends about an object; old and object may be nil.
func newReview(t *testing.T, operation admissionv1.Operation, object, old *unstructured.Unstructured) *admissionv1.AdmissionReview {
	t.Helper()
	some := object
	if some == nil {
		some = old
	}
	gvk := some.GroupVersionKind()
	request := &admissionv1.AdmissionRequest{
		UID: "1", Operation: operation, Kind: metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Name: some.GetName(), Namespace: some.GetNamespace(),
	}
	if object != nil {
		request.Object = runtime.RawExtension{Raw: encodeJSON(t, object)}
	}
	if old != nil {
		request.OldObject = runtime.RawExtension{Raw: encodeJSON(t, old)}
	}
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	}
}

// postReview sends a body to the handler.
func postReview(h http.Handler, path string, body []byte, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func requireResponse(t *testing.T, h http.Handler, path string, review *admissionv1.AdmissionReview) *admissionv1.AdmissionResponse {
	t.Helper()
	w := postReview(h, path, encodeJSON(t, review))
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	back := &admissionv1.AdmissionReview{}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), back))
	assert.Equal(t, review.TypeMeta, back.TypeMeta)
	require.NotNil(t, back.Response)
	assert.Equal(t, review.Request.UID, back.Response.UID)
	return back.Response
}

func TestMalformedReviews(t *testing.T) {
	h := newHandler(t, Options{})
	valid := encodeJSON(t, newReview(t, admissionv1.Create, validObject(t, "ExposureClass"), nil))
	for name, c := range map[string]struct {
		path   string
		body   string
		change func(*http.Request)
		code   int
		want   string
	}{
		"another path":         {path: "/other", code: http.StatusNotFound, want: "/validate"},
		"GET":                  {change: func(r *http.Request) { r.Method = http.MethodGet }, code: http.StatusMethodNotAllowed, want: "POST"},
		"YAML":                 {change: func(r *http.Request) { r.Header.Set("Content-Type", "application/yaml") }, code: http.StatusUnsupportedMediaType, want: "application/json"},
		"no content type":      {change: func(r *http.Request) { r.Header.Del("Content-Type") }, code: http.StatusUnsupportedMediaType, want: "application/json"},
		"no JSON":              {body: "kind: AdmissionReview", code: http.StatusBadRequest, want: "not an AdmissionReview"},
		"nothing":              {body: " ", code: http.StatusBadRequest, want: "not an AdmissionReview"},
		"another version":      {body: `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"1"}}`, code: http.StatusBadRequest, want: "admission.k8s.io/v1"},
		"no request":           {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, code: http.StatusBadRequest, want: "no request"},
		"no uid":               {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`, code: http.StatusBadRequest, want: "uid"},
		"deeply nested":        {body: strings.Repeat(`{"a":`, 100_000), code: http.StatusBadRequest, want: "not an AdmissionReview"},
		"more than 8 MiB":      {body: `"` + strings.Repeat("a", maxRequest) + `"`, code: http.StatusRequestEntityTooLarge, want: "8 MiB"},
		"with a charset":       {change: func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, code: http.StatusOK},
		"a wrong request type": {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":[]}`, code: http.StatusBadRequest, want: "not an AdmissionReview"},
	} {
		t.Run(name, func(t *testing.T) {
			path, body, change := c.path, []byte(c.body), c.change
			if path == "" {
				path = PathValidate
			}
			if len(body) == 0 {
				body = valid
			}
			if change == nil {
				change = func(*http.Request) {}
			}
			w := postReview(h, path, body, change)
			assert.Equal(t, c.code, w.Code)
			assert.Contains(t, w.Body.String(), c.want)
		})
	}
}

func TestErrorResponses(t *testing.T) {
	pod := decodeObject(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}}`)
	seed, garden := validObject(t, "Seed"), validObject(t, "Garden")
	mismatch := newReview(t, admissionv1.Create, seed, nil)
	mismatch.Request.Kind.Kind = "Shoot"
	list := newReview(t, admissionv1.Create, seed, nil)
	list.Request.Object.Raw = []byte(`[]`)
	for name, c := range map[string]struct {
		path   string
		review *admissionv1.AdmissionReview
		opts   Options
		code   int32
		want   string
	}{
		"an unknown kind":             {PathValidate, newReview(t, admissionv1.Create, pod, nil), Options{}, 400, "Pergola has no rules for"},
		"an unknown kind to default":  {PathDefault, newReview(t, admissionv1.Create, pod, nil), Options{}, 400, "Pergola has no rules for"},
		"an object of another kind":   {PathValidate, mismatch, Options{}, 400, "its object is a core.gardener.cloud/v1beta1, Kind=Seed"},
		"no object":                   {PathValidate, newReview(t, admissionv1.Create, nil, seed), Options{}, 400, "no object"},
		"no object to default":        {PathDefault, newReview(t, admissionv1.Create, nil, seed), Options{}, 400, "no object"},
		"no old object":               {PathValidate, newReview(t, admissionv1.Update, seed, nil), Options{}, 400, "lacks the object or the old object"},
		"nothing to delete":           {PathValidate, newReview(t, admissionv1.Delete, seed, nil), Options{}, 400, "no old object"},
		"a list":                      {PathValidate, list, Options{}, 400, "cannot be read"},
		"Gardens that nobody can see": {PathValidate, newReview(t, admissionv1.Create, garden, nil), Options{Gardens: fakeGardens{err: errors.New("no route to host")}}, 500, "no route to host"},
	} {
		t.Run(name, func(t *testing.T) {
			response := requireResponse(t, newHandler(t, c.opts), c.path, c.review)
			assert.False(t, response.Allowed)
			assert.Equal(t, c.code, response.Result.Code)
			assert.Contains(t, response.Result.Message, c.want)
		})
	}
}

// TestDenial: the answer has each finding with field, type and message of validate.
func TestDenial(t *testing.T) {
	h := newHandler(t, Options{})
	broken := mergeYAML(t, validObject(t, "Shoot"), `spec: {region: "", kubernetes: {version: "1.99.0"}, bogus: 1, provider: {workers: [{name: a, machine: {type: local, image: {name: local, version: 1.0.0}}, minimum: 2, maximum: 1}]}}`)
	found, err := schemas.Validate(t.Context(), []schemas.Input{{Object: broken}}, schemas.Options{})
	require.NoError(t, err)
	response := requireResponse(t, h, PathValidate, newReview(t, admissionv1.Create, broken, nil))
	require.False(t, response.Allowed)
	assert.Equal(t, metav1.StatusReasonInvalid, response.Result.Reason)
	assert.EqualValues(t, 422, response.Result.Code)
	assert.Equal(t, "Shoot", response.Result.Details.Kind)
	assert.Equal(t, "core.gardener.cloud", response.Result.Details.Group)
	assert.Equal(t, "local", response.Result.Details.Name)
	causes := []metav1.StatusCause{}
	for _, v := range found {
		if v.Severity == schemas.SeverityError {
			causes = append(causes, metav1.StatusCause{Field: v.Field, Message: v.Message, Type: metav1.CauseType("FieldValue" + string(v.Type))})
			assert.Contains(t, response.Result.Message, v.Field+": "+v.Message+" ["+v.Rule+"]")
		}
	}
	assert.GreaterOrEqual(t, len(causes), 3)
	assert.Equal(t, causes, response.Result.Details.Causes)
	assert.True(t, strings.HasPrefix(response.Result.Message, "Shoot garden-local/local is not valid: "), response.Result.Message)
}

func TestWarningsDoNotDeny(t *testing.T) {
	seed := validObject(t, "Seed")
	before := mergeYAML(t, seed, `spec: {provider: {zones: ["0", gone]}}`)
	response := requireResponse(t, newHandler(t, Options{}), PathValidate, newReview(t, admissionv1.Update, seed, before))
	assert.True(t, response.Allowed, "%v", response.Result)
	require.Len(t, response.Warnings, 1)
	assert.Contains(t, response.Warnings[0], `spec.provider.zones: lost "gone"`)
	assert.Contains(t, response.Warnings[0], "[seed/zones-stay]")
}

func TestUncheckedRequests(t *testing.T) {
	h := newHandler(t, Options{})
	broken := mergeYAML(t, validObject(t, "Shoot"), `spec: {region: ""}`)
	status := newReview(t, admissionv1.Update, broken, broken)
	status.Request.SubResource = "status"
	assert.True(t, requireResponse(t, h, PathValidate, status).Allowed)
	assert.True(t, requireResponse(t, h, PathDefault, status).Allowed)
	assert.True(t, requireResponse(t, h, PathValidate, newReview(t, admissionv1.Connect, broken, nil)).Allowed)

	deleting := mergeYAML(t, broken, `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [a.b/c]}`)
	free := mergeYAML(t, deleting, `metadata: {finalizers: null}`)
	assert.True(t, requireResponse(t, h, PathValidate, newReview(t, admissionv1.Update, free, deleting)).Allowed)
	assert.False(t, requireResponse(t, h, PathValidate, newReview(t, admissionv1.Update, mergeYAML(t, free, `spec: {purpose: testing}`), deleting)).Allowed)
	assert.Empty(t, requireResponse(t, h, PathDefault, newReview(t, admissionv1.Update, mergeYAML(t, free, `spec: {purpose: null}`), deleting)).Patch)
}

// TestDefaultsAreNotChanges: an object from before the webhook gets its defaults with its next
// change. A pool with a pending update must not change, but may get defaults.
func TestDefaultsAreNotChanges(t *testing.T) {
	h := newHandler(t, Options{})
	bare := mergeYAML(t, validObject(t, "Shoot"), `{status: {inPlaceUpdates: {pendingWorkerUpdates: {manualInPlaceUpdate: [local]}}}, spec: {provider: {workers: [
		{name: local, updateStrategy: ManualInPlaceUpdate, machine: {type: local, image: {name: local, version: 1.0.0}}, minimum: 1, maximum: 1, maxSurge: 0, maxUnavailable: 1}]}}}`)
	full := h.defaults.withDefaults(bare)
	require.NotEqual(t, bare.Object, full.Object)
	denies := func(response *admissionv1.AdmissionResponse) bool {
		return strings.Contains(denyingRules(response), "shoot/worker-update-pending")
	}
	assert.False(t, denies(requireResponse(t, h, PathValidate, newReview(t, admissionv1.Update, full, bare))))
	changed := mergeYAML(t, full, `spec: {kubernetes: {kubelet: {maxPods: 100}}}`)
	assert.True(t, denies(requireResponse(t, h, PathValidate, newReview(t, admissionv1.Update, changed, bare))))
}

func TestPanicsAndTimeouts(t *testing.T) {
	var logged bytes.Buffer
	h := newHandler(t, Options{Log: slog.New(slog.NewJSONHandler(&logged, nil))})
	review := newReview(t, admissionv1.Create, mergeYAML(t, validObject(t, "ExposureClass"), `handler: something-private`), nil)
	real, release := h.validate, make(chan struct{})
	var behaviour atomic.Value // abandoned requests still read it
	h.validate = func(ctx context.Context, inputs []schemas.Input, opts schemas.Options) ([]schemas.Violation, error) {
		switch behaviour.Load() {
		case "panic":
			panic("something-private")
		case "hang":
			<-release
			return nil, nil
		case "fail":
			return nil, errors.New("out of order")
		}
		return real(ctx, inputs, opts)
	}
	behaviour.Store("panic")
	w := postReview(h, PathValidate, encodeJSON(t, review))
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.NotContains(t, w.Body.String(), "something-private")

	behaviour.Store("hang")
	for range cap(h.slots) + 1 { // the last one does not even get a slot
		w = postReview(h, PathValidate+"?timeout=10ms", encodeJSON(t, review))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	}
	close(release)
	behaviour.Store("fail")
	response := requireResponse(t, h, PathValidate, review)
	assert.EqualValues(t, 500, response.Result.Code)
	behaviour.Store("none")
	assert.True(t, requireResponse(t, h, PathValidate, review).Allowed, "the next request is answered as ever")

	assert.Contains(t, logged.String(), `"kind":"ExposureClass"`)
	assert.NotContains(t, logged.String(), "something-private")
	metrics := httptest.NewRecorder()
	promhttp.HandlerFor(h.Metrics(), promhttp.HandlerOpts{}).ServeHTTP(metrics, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		"pergola_admission_panics_total 1",
		fmt.Sprintf(`pergola_admission_requests_total{kind="ExposureClass.core.gardener.cloud",operation="CREATE",result="error",webhook="validate"} %d`, cap(h.slots)+3),
		`pergola_admission_requests_total{kind="ExposureClass.core.gardener.cloud",operation="CREATE",result="allowed",webhook="validate"} 1`,
	} {
		assert.Contains(t, metrics.Body.String(), line+"\n")
	}
}

// TestLookupsAreLogged: errors of listing Gardens are not secret, and the administrator needs them.
func TestLookupsAreLogged(t *testing.T) {
	var logged bytes.Buffer
	h := newHandler(t, Options{Log: slog.New(slog.NewJSONHandler(&logged, nil)), Gardens: fakeGardens{err: errors.New("no route to host")}})
	assert.False(t, requireResponse(t, h, PathValidate, newReview(t, admissionv1.Create, validObject(t, "Garden"), nil)).Allowed)
	assert.Contains(t, logged.String(), "no route to host")
}

// TestLogsHoldNoContents: the log names the rule of a denied object, but nothing of its content.
func TestLogsHoldNoContents(t *testing.T) {
	var logged bytes.Buffer
	h := newHandler(t, Options{Log: slog.New(slog.NewJSONHandler(&logged, nil))})
	response := requireResponse(t, h, PathValidate, newReview(t, admissionv1.Create, mergeYAML(t, validObject(t, "Seed"), `spec: {networks: {pods: something-private}}`), nil))
	assert.False(t, response.Allowed)
	assert.Contains(t, logged.String(), `"msg":"denied"`)
	assert.Contains(t, logged.String(), `"rules":"`)
	assert.NotContains(t, logged.String(), "something-private")
}

func TestGardens(t *testing.T) {
	garden := validObject(t, "Garden")
	namespace := decodeObject(t, `{apiVersion: v1, kind: Namespace, metadata: {name: garden}}`)
	other := decodeObject(t, `{apiVersion: v1, kind: Namespace, metadata: {name: other}}`)
	for name, c := range map[string]struct {
		gardens Gardens
		review  *admissionv1.AdmissionReview
		rule    string
	}{
		"the first":                    {fakeGardens{}, newReview(t, admissionv1.Create, garden, nil), ""},
		"the second":                   {fakeGardens{names: []string{"other"}}, newReview(t, admissionv1.Create, garden, nil), "garden/only-one"},
		"nobody looks":                 {nil, newReview(t, admissionv1.Create, garden, nil), ""},
		"namespace garden":             {fakeGardens{names: []string{"other"}}, newReview(t, admissionv1.Delete, nil, namespace), "namespace/garden-kept"},
		"namespace garden, no Garden":  {fakeGardens{}, newReview(t, admissionv1.Delete, nil, namespace), ""},
		"namespace garden, nobody":     {nil, newReview(t, admissionv1.Delete, nil, namespace), ""},
		"another namespace":            {fakeGardens{names: []string{"other"}}, newReview(t, admissionv1.Delete, nil, other), ""},
		"deletion without annotation":  {fakeGardens{}, newReview(t, admissionv1.Delete, nil, garden), "any/deletion-confirmed"},
		"deletion that was confirmed":  {fakeGardens{}, newReview(t, admissionv1.Delete, nil, mergeYAML(t, garden, deletionConfirmation)), ""},
		"a finalizer of the operator":  {fakeGardens{}, newReview(t, admissionv1.Create, mergeYAML(t, garden, `metadata: {finalizers: [gardener.cloud/operator]}`), nil), "garden/finalizers"},
		"a change beside another one":  {fakeGardens{names: []string{"other"}}, newReview(t, admissionv1.Update, garden, garden), ""},
		"a Seed asks for no Gardens":   {fakeGardens{err: errors.New("down")}, newReview(t, admissionv1.Create, validObject(t, "Seed"), nil), ""},
		"nor do most of its deletions": {fakeGardens{err: errors.New("down")}, newReview(t, admissionv1.Delete, nil, other), ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := requireResponse(t, newHandler(t, Options{Gardens: c.gardens}), PathValidate, c.review)
			assert.Equal(t, c.rule == "", response.Allowed)
			assert.Equal(t, c.rule, denyingRules(response))
		})
	}
}
