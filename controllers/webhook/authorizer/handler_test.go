// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
)

func (h *Handler) post(t *testing.T, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return recorder
}

func reviewJSON(t *testing.T, who authorizationv1.SubjectAccessReviewSpec, what string) string {
	t.Helper()
	a := parseQuestion(t, what)
	who.ResourceAttributes = &a
	r := authorizationv1.SubjectAccessReview{Spec: who}
	r.APIVersion, r.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
	data, err := json.Marshal(r)
	require.NoError(t, err)
	return string(data)
}

func TestReviewResponses(t *testing.T) {
	h := newGardenHandler(t, landscape)
	for _, c := range []struct {
		name, path, body string
		want             authorizationv1.SubjectAccessReviewStatus
	}{
		{"yes", PathSeed, reviewJSON(t, gardenletA, "get secrets garden-one/cloud"), authorizationv1.SubjectAccessReviewStatus{Allowed: true}},
		{"no opinion", PathSeed, reviewJSON(t, gardenletB, "get secrets garden-one/cloud"), authorizationv1.SubjectAccessReviewStatus{Reason: "neither seed b nor its objects refer to secrets garden-one/cloud"}},
		{"somebody else", PathSeed, reviewJSON(t, serviceAccount("kube-system", "x"), "get secrets garden-one/cloud"), authorizationv1.SubjectAccessReviewStatus{}},
		{"no resource", PathSeed, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"gardener.cloud:system:seed:a","groups":["gardener.cloud:system:seeds"],"nonResourceAttributes":{"path":"/metrics","verb":"get"}}}`, authorizationv1.SubjectAccessReviewStatus{}},
		{"who says to be a gardenlet and is none", PathSeed, reviewJSON(t, authorizationv1.SubjectAccessReviewSpec{User: "x", Groups: []string{groupSeeds}}, "get secrets garden-one/cloud"),
			authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "members of the group gardener.cloud:system:seeds must be named gardener.cloud:system:seed:NAME"}},
		{"a seed does not ask there", PathShoot, reviewJSON(t, gardenletA, "get secrets garden-one/cloud"), authorizationv1.SubjectAccessReviewStatus{}},
		{"a Shoot", PathShoot, reviewJSON(t, gardenletSelf, "get secrets garden-one/self-backup"), authorizationv1.SubjectAccessReviewStatus{Allowed: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := h.post(t, http.MethodPost, c.path, c.body)
			require.Equal(t, http.StatusOK, got.Code, got.Body.String())
			var answer authorizationv1.SubjectAccessReview
			require.NoError(t, json.Unmarshal(got.Body.Bytes(), &answer))
			assert.Equal(t, "authorization.k8s.io/v1 SubjectAccessReview", answer.APIVersion+" "+answer.Kind)
			assert.Equal(t, c.want, answer.Status)
		})
	}
	metrics := httptest.NewRecorder()
	promhttp.HandlerFor(h.Metrics(), promhttp.HandlerOpts{}).ServeHTTP(metrics, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, line := range []string{`pergola_authorizer_requests_total{authorizer="seed",result="allowed"} 1`, `pergola_authorizer_requests_total{authorizer="seed",result="denied"} 1`,
		`pergola_authorizer_requests_total{authorizer="seed",result="noopinion"} 3`, `pergola_authorizer_requests_total{authorizer="shoot",result="allowed"} 1`, "pergola_authorizer_ready 1"} {
		assert.Contains(t, metrics.Body.String(), line+"\n")
	}
}

func TestRejectedRequests(t *testing.T) {
	h := newGardenHandler(t, landscape)
	good := reviewJSON(t, gardenletA, "get secrets garden-one/cloud")
	for _, c := range []struct {
		name, method, path, body string
		code                     int
		message                  string
	}{
		{"path", http.MethodPost, "/webhooks/auth/other", good, http.StatusNotFound, "/webhooks/auth/seed"},
		{"method", http.MethodGet, PathSeed, "", http.StatusMethodNotAllowed, "only POST"},
		{"text", http.MethodPost, PathSeed, "x", http.StatusBadRequest, "not a SubjectAccessReview"},
		{"empty", http.MethodPost, PathSeed, "", http.StatusBadRequest, "not a SubjectAccessReview"},
		{"kind", http.MethodPost, PathSeed, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, http.StatusBadRequest, "AdmissionReview"},
		{"version", http.MethodPost, PathSeed, strings.ReplaceAll(good, "k8s.io/v1", "k8s.io/v1beta1"), http.StatusBadRequest, "v1beta1"},
		{"size", http.MethodPost, PathSeed, strings.Repeat(" ", maxRequest+1), http.StatusRequestEntityTooLarge, "1048576"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := h.post(t, c.method, c.path, c.body)
			assert.Equal(t, c.code, got.Code)
			assert.Contains(t, got.Body.String(), c.message)
		})
	}
	t.Run("not read yet", func(t *testing.T) {
		h.unreadKinds = func() []string { return []string{"shoots.core.gardener.cloud (forbidden)"} }
		got := h.post(t, http.MethodPost, PathSeed, good)
		assert.Equal(t, http.StatusServiceUnavailable, got.Code)
		assert.Empty(t, got.Header().Get("Retry-After"), "the API server would hold the request")
		assert.Contains(t, got.Body.String(), "shoots.core.gardener.cloud (forbidden)")
		assert.ErrorContains(t, h.Ready(), "not read the virtual garden yet")
	})
	t.Run("a fault", func(t *testing.T) {
		h.unreadKinds = func() []string { panic("x") }
		assert.Equal(t, http.StatusInternalServerError, h.post(t, http.MethodPost, PathSeed, good).Code)
	})
}
