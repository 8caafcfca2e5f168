// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// startUnreadyWebhook returns a webhook that allows everything after it has failed a number of
// requests.
func startUnreadyWebhook(t *testing.T) (url, ca string, refusals *atomic.Int64) {
	t.Helper()
	refusals = &atomic.Int64{}
	refusals.Store(1 << 30)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if refusals.Add(-1) >= 0 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		var review admissionv1.AdmissionReview
		body, _ := io.ReadAll(req.Body)
		_ = json.Unmarshal(body, &review)
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Response: &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}})
	}))
	t.Cleanup(server.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server.URL, base64.StdEncoding.EncodeToString(certificate), refusals
}

func (f *fixture) validatingWebhook(url, ca string) *unstructured.Unstructured {
	o := f.object(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS-hook}
webhooks:
- name: widgets.NS.example.com
  clientConfig: {}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{apiGroups: [NS.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}]
`)
	hooks := o.Object["webhooks"].([]any)
	hooks[0].(map[string]any)["clientConfig"] = map[string]any{"url": url, "caBundle": ca}
	return o
}

// TestStartingWebhookIsRetried: a new webhook of the set gets time to start, and its objects are
// applied in the same run. An existing webhook that does not answer is an error at once.
func TestStartingWebhookIsRetried(t *testing.T) {
	f := newFixture(t)
	url, ca, refusals := startUnreadyWebhook(t)
	hook := f.validatingWebhook(url, ca)
	f.mustApply(f.set(f.widgets()))
	f.createAs("somebody", hook)
	_, err := f.apply(f.set(f.widgets(), f.widget("w")))
	require.Eventually(t, func() bool { // the API server needs a moment to learn the webhook
		_, err = f.apply(f.set(f.widgets(), f.widget(fmt.Sprintf("w%d", refusals.Load()))))
		return err != nil
	}, 20*time.Second, 50*time.Millisecond)
	assert.Equal(t, ReasonWebhookDenied, ReasonOf(err))
	assert.ErrorContains(t, err, "does not answer")

	refusals.Store(3)
	hook.SetLabels(map[string]string{"a": "b"})
	r := f.mustApply(f.set(f.widgets(), hook, f.widget("new")))
	assert.Equal(t, Created, actions(r)["Widget/new"])
	assert.Negative(t, refusals.Load())
}

// TestUnavailableAPIServiceSkipsItsObjects: only objects of an API that an APIService of the set
// serves wait for it.
func TestUnavailableAPIServiceSkipsItsObjects(t *testing.T) {
	f := newFixture(t)
	service := f.object(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.NS.example.com}
spec: {group: NS.example.com, version: v1, groupPriorityMinimum: 1000, versionPriority: 10, insecureSkipTLSVerify: true, service: {name: nothing, namespace: NS}}
`)
	set := f.set(service, f.widget("w"), f.configMap("c", "x"))
	r, err := f.e.Apply(f.ctx, f.c, set, f.inv, ApplyOptions{ReadyTimeout: time.Second})
	require.Error(t, err)
	assert.Equal(t, map[string]Action{"APIService/" + service.GetName(): Failed, "Widget/w": Skipped, "ConfigMap/c": Created}, actions(r))
	assert.ErrorContains(t, err, "not available after 1s: ServiceNotFound")
	assert.ErrorContains(t, err, "because APIService "+service.GetName()+" failed")

	// A definition replaces it, and the object follows.
	f.mustApply(f.set(f.configMap("c", "x")))
	r = f.mustApply(f.set(f.widgets(), f.widget("w"), f.configMap("c", "x")))
	assert.Equal(t, Created, actions(r)["Widget/w"])
}

// TestUnneededAPIServiceCausesNoWait: an APIService without objects in the set causes no wait.
func TestUnneededAPIServiceCausesNoWait(t *testing.T) {
	f := newFixture(t)
	service := f.object(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.NS.example.com}
spec: {group: NS.example.com, version: v1, groupPriorityMinimum: 1000, versionPriority: 10, insecureSkipTLSVerify: true, service: {name: nothing, namespace: NS}}
`)
	began := time.Now()
	f.mustApply(f.set(service, f.configMap("c", "x")))
	assert.Less(t, time.Since(began), 20*time.Second)
	_, err := f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
}
