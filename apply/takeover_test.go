// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/change"
)

func TestFieldsOfFormerManagersAreTakenOver(t *testing.T) {
	for name, c := range map[string]struct {
		manager string
		label   string // puts the object into the live cache
		force   bool
	}{
		"resource-manager, cached": {"gardener-resource-manager", "gardener", false},
		"kubectl, not cached":      {"kubectl-client-side-apply", "nobody", false},
		"gardenlet, forced":        {"gardenlet", "nobody", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			former := f.configMap("c", "old")
			former.SetLabels(map[string]string{gardenerKeys().ManagedByLabel: c.label})
			former.Object["data"].(map[string]any)["stale"] = "x"
			_, err := f.resource(former).Create(f.ctx, former, metav1.CreateOptions{FieldManager: c.manager})
			require.NoError(t, err)

			set := f.set(f.configMap("c", "new"))
			set.Force = c.force
			r := f.mustApply(set)
			assert.Equal(t, Adopted, r.Objects[0].Action)
			live := f.get(former)
			assert.Equal(t, map[string]any{"key": "new"}, nested(live, "data"), "the stale field is gone")
			for _, m := range live.GetManagedFields() {
				assert.NotEqual(t, c.manager, m.Manager)
			}
			assert.Empty(t, f.requests(func() { f.mustApply(set) }))

			// Later edits by the same manager are not taken over.
			f.patch(former, c.manager, `{"data":{"extra":"by hand"}}`)
			set.Objects[0] = f.configMap("c", "newer")
			f.mustApply(set)
			assert.Equal(t, map[string]any{"key": "newer", "extra": "by hand"}, nested(f.get(former), "data"))
		})
	}
}

// TestTakeoverRetriesConcurrentWrites: someone writes a status or an annotation between the read of
// an object and the patch of its managers. The takeover is then retried, but not forever.
func TestTakeoverRetriesConcurrentWrites(t *testing.T) {
	for name, test := range map[string]struct {
		writes int64
		taken  bool
	}{"once": {1, true}, "some times": {4, true}, "always": {1 << 40, false}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			former := f.configMap("c", "old")
			f.createBy("gardener-operator", former)
			var patches atomic.Int64
			config := rest.CopyConfig(server.config)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return policyRoundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Header.Get("Content-Type") == string(types.JSONPatchType) && patches.Add(1) <= test.writes {
						f.patch(former, "somebody", fmt.Sprintf(`{"metadata":{"annotations":{"example.org/seen":"%d"}}}`, patches.Load()))
					}
					return next.RoundTrip(r)
				})
			})
			c, err := newCluster("test", config, ClusterOptions{})
			require.NoError(t, err)
			defer c.Close()
			_, err = f.e.Apply(f.ctx, c, f.set(f.configMap("c", "new")), NewMemoryInventory(), ApplyOptions{})
			live := f.get(former)
			if !test.taken {
				assert.Equal(t, ReasonInvalid, ReasonOf(err))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "new", nested(live, "data", "key"))
			assert.Equal(t, fmt.Sprint(test.writes), live.GetAnnotations()["example.org/seen"], "it stays")
			for _, m := range live.GetManagedFields() {
				assert.NotEqual(t, "gardener-operator", m.Manager)
			}
		})
	}
}

// createBy creates an object in the name of another manager.
func (f *fixture) createBy(manager string, o *unstructured.Unstructured) {
	f.Helper()
	_, err := f.resource(o).Create(f.ctx, o, metav1.CreateOptions{FieldManager: manager})
	require.NoError(f, err)
}

// planOne returns the plan for a set with one object.
func (f *fixture) planOne(s Set) (change.Item, error) {
	f.Helper()
	before := f.c.Requests()
	p, err := f.e.Plan(f.ctx, f.c, s, f.inv, ApplyOptions{})
	assert.Zero(f, f.c.Requests().Sub(before).Writes(), "a plan writes nothing")
	require.Len(f, p.Items, 1)
	return p.Items[0], err
}

func TestImperativeWritersKeepTheirFields(t *testing.T) {
	// cached or not
	for _, label := range []string{gardenerKeys().ManagedByLabel, "team"} {
		for _, manager := range []string{"kubectl-create", "kubectl-edit", "kubectl-patch", "kubectl-label", "kubectl", "before-first-apply", "somebody"} {
			t.Run(manager+", "+label, func(t *testing.T) {
				f := newFixture(t)
				theirs := f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: mal, namespace: NS}, data: {key: "1", keep: me}}`)
				theirs.SetLabels(map[string]string{label: "gardener"})
				f.createBy(manager, theirs)
				set := f.set(f.configMap("mal", "2"))
				set.Force = false

				item, err := f.planOne(set)
				require.Error(t, err)
				assert.Equal(t, change.Fail, item.Action)
				_, err = f.apply(set)
				var e *ObjectError
				require.ErrorAs(t, err, &e)
				assert.Equal(t, ReasonConflict, e.Reason)
				assert.Equal(t, []string{manager}, e.Managers)
				assert.Equal(t, []string{"data.key"}, e.Fields)
				assert.Equal(t, "1", nested(f.get(theirs), "data", "key"), "nothing is overwritten")

				set.Objects[0] = f.configMap("mal", "1")
				item, err = f.planOne(set)
				require.NoError(t, err)
				assert.Equal(t, change.Adopt, item.Action)
				assert.Contains(t, item.Reason, "from now on it is deleted when it is no longer declared")
				assert.NotContains(t, item.Reason, "takes over")
				for _, field := range item.Fields {
					assert.NotContains(t, field.Path, "keep")
				}
				r := f.mustApply(set)
				assert.Equal(t, Adopted, r.Objects[0].Action)
				live := f.get(theirs)
				assert.Equal(t, map[string]any{"key": "1", "keep": "me"}, nested(live, "data"))
				assert.Equal(t, "gardener", live.GetLabels()[label])
			})
		}
	}
}

func TestForceSelectsObjects(t *testing.T) {
	f := newFixture(t)
	f.createBy("kubectl-create", f.configMap("one", "theirs"))
	f.createBy("kubectl-create", f.configMap("two", "theirs"))
	set := f.set(f.configMap("one", "ours"), f.configMap("two", "ours"))
	set.Force = false
	f.e = newEngine(Options{IsForced: func(r Ref) bool { return r.Name == "one" }, ForceHint: func(r Ref) string { return "say force " + r.Name }})
	r, err := f.apply(set)
	var e *ObjectError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "two", e.Object.Name)
	assert.True(t, strings.HasSuffix(e.Hint, ", or say force two"), e.Hint)
	assert.Equal(t, map[string]Action{"ConfigMap/one": Adopted, "ConfigMap/two": Failed}, actions(r))
	assert.Equal(t, "ours", nested(f.get(f.configMap("one", "")), "data", "key"))
	assert.Equal(t, "theirs", nested(f.get(f.configMap("two", "")), "data", "key"))
}

// takeoverCases lists objects as a former manager applied them, and their declarations.
var takeoverCases = map[string]struct{ manager, former, edit, declared string }{
	"kubectl apply": {"kubectl-client-side-apply", `{apiVersion: v1, kind: ConfigMap, metadata: {name: o, namespace: NS, labels: {old: x, stays: x},
		annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}, data: {a: "1", stale: "x"}}`,
		`{"data":{"by-hand":"y"}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: o, namespace: NS, labels: {stays: x}}, data: {a: "2"}}`},
	"kubectl of old": {"kubectl", `{apiVersion: v1, kind: ConfigMap, metadata: {name: o, namespace: NS,
		annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}, data: {a: "1", stale: "x"}}`,
		`{"metadata":{"labels":{"by-hand":"y"}}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: o, namespace: NS}, data: {a: "1"}}`},
	"all data go": {"helm", `{apiVersion: v1, kind: ConfigMap, metadata: {name: o, namespace: NS}, data: {a: "1", stale: "x"}}`,
		`{"metadata":{"labels":{"by-hand":"y"}}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: o, namespace: NS}, binaryData: {b: eA==}}`},
	"namespace": {"kubectl-client-side-apply", `{apiVersion: v1, kind: Namespace, metadata: {name: NS-o, labels: {old: x},
		annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}}`,
		`{"metadata":{"labels":{"by-hand":"y"}}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: NS-o, labels: {new: x}}}`},
	"workload": {"helm", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: o, namespace: NS}, spec: {replicas: 3, minReadySeconds: 7, revisionHistoryLimit: 3,
		selector: {matchLabels: {app: o}}, template: {metadata: {labels: {app: o, old: x}}, spec: {terminationGracePeriodSeconds: 5, containers: [
		{name: c, image: "c:1", env: [{name: A, value: a}, {name: B, value: b}], args: [x, z], ports: [{containerPort: 80}, {containerPort: 81}]},
		{name: sidecar, image: "s:1"}]}}}}`,
		`{"metadata":{"annotations":{"by-hand":"y"}}}`, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: o, namespace: NS}, spec: {
		selector: {matchLabels: {app: o}}, template: {metadata: {labels: {app: o}}, spec: {containers: [
		{name: c, image: "c:2", env: [{name: A, value: a}], ports: [{containerPort: 80}]}]}}}}`},
	"service": {"gardener-operator", `{apiVersion: v1, kind: Service, metadata: {name: o, namespace: NS}, spec: {selector: {a: b, old: x}, sessionAffinity: ClientIP,
		ports: [{name: p, port: 80}, {name: q, port: 81}]}}`,
		`{"metadata":{"annotations":{"by-hand":"y"}}}`, `{apiVersion: v1, kind: Service, metadata: {name: o, namespace: NS}, spec: {selector: {a: b}, ports: [{name: p, port: 80}]}}`},
}

// TestPlanShowsWhatATakeoverRemoves: the apply does exactly what the plan of a takeover shows, to
// the last field.
func TestPlanShowsWhatATakeoverRemoves(t *testing.T) {
	for name, c := range takeoverCases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			theirs := f.object(c.former)
			f.createBy(c.manager, theirs)
			_, err := f.resource(theirs).Patch(f.ctx, theirs.GetName(), types.MergePatchType, []byte(c.edit), patchAs("kubectl-edit"))
			require.NoError(t, err)
			before := f.get(theirs)
			set := f.set(f.object(c.declared))
			set.Force = false

			item, err := f.planOne(set)
			require.NoError(t, err)
			r := f.mustApply(set)
			after := f.get(theirs)
			text, err := after.MarshalJSON()
			require.NoError(t, err)
			assert.Equal(t, change.Adopt, item.Action)
			assert.Equal(t, Adopted, r.Objects[0].Action)
			assert.Equal(t, r.Objects[0].Message, item.Reason)
			assert.Contains(t, item.Reason, "takes over the fields of "+c.manager+" and removes undeclared fields: ")
			for i := range item.Fields {
				item.Fields[i].Manager = ""
			}
			assert.Equal(t, changedFields(before, after), item.Fields)
			assert.Contains(t, string(text), `"by-hand":"y"`, "what others set stays")
			assert.Empty(t, f.requests(func() { f.mustApply(set) }))
		})
	}
}

// TestPlanOfTakeoverWithoutPrediction: the object is invalid with the former manager's fields, and
// valid without them.
func TestPlanOfTakeoverWithoutPrediction(t *testing.T) {
	f := newFixture(t)
	service := `{apiVersion: v1, kind: Service, metadata: {name: o, namespace: NS}, spec: {selector: {a: b}, ports: [{name: p, port: PORT}]}}`
	f.createBy("helm", f.object(strings.Replace(service, "PORT", "80", 1)))
	set := f.set(f.object(strings.Replace(service, "PORT", "81", 1)))
	set.Force = false
	item, err := f.planOne(set)
	require.NoError(t, err)
	assert.Equal(t, change.Adopt, item.Action)
	r := f.mustApply(set)
	assert.Equal(t, Adopted, r.Objects[0].Action)
	assert.Equal(t, r.Objects[0].Message, item.Reason)
	assert.Len(t, nested(f.get(set.Objects[0]), "spec", "ports"), 1)
	assert.EqualValues(t, 81, nested(f.get(set.Objects[0]), "spec", "ports").([]any)[0].(map[string]any)["port"])

	// An object that is never valid is refused before any field is taken over.
	f.createBy("helm", f.configMap("bad", "x"))
	before := f.get(f.configMap("bad", ""))
	bad := f.configMap("bad", "y")
	require.NoError(t, unstructured.SetNestedField(bad.Object, "x", "data", "not a key"))
	_, err = f.apply(f.set(bad))
	var e *ObjectError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, ReasonInvalid, e.Reason)
	assert.Equal(t, before, f.get(bad))
}

// TestConflictingTakeoverChangesNothing: a takeover that conflicts with another manager takes
// nothing.
func TestConflictingTakeoverChangesNothing(t *testing.T) {
	f := newFixture(t)
	theirs := f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: o, namespace: NS}, data: {key: "1", stale: x}}`)
	f.createBy("helm", theirs)
	_, err := f.resource(theirs).Patch(f.ctx, "o", types.MergePatchType, []byte(`{"data":{"key":"by hand"}}`), patchAs("kubectl-edit"))
	require.NoError(t, err)
	before := f.get(theirs)
	set := f.set(f.configMap("o", "2"))
	set.Force = false
	_, err = f.planOne(set)
	var e *ObjectError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, []string{"kubectl-edit"}, e.Managers)
	_, err = f.apply(set)
	require.ErrorAs(t, err, &e)
	assert.Equal(t, []string{"kubectl-edit"}, e.Managers)
	assert.Equal(t, []string{"data.key"}, e.Fields)
	assert.Equal(t, before, f.get(theirs), "not even its managers are touched")
}

// TestOwnObjectIsNotAdopted: an object that our own process created by another request is not
// adopted.
func TestOwnObjectIsNotAdopted(t *testing.T) {
	f := newFixture(t)
	for name, manager := range map[string]string{"ours": "pergola", "theirs": "somebody"} {
		f.createBy(manager, f.configMap(name, "before"))
	}
	set := f.set(f.configMap("ours", "x"), f.configMap("theirs", "before"))
	p, err := f.e.Plan(f.ctx, f.cluster(), set, f.inv, ApplyOptions{})
	require.NoError(t, err)
	var adopted []string
	for _, item := range p.Items {
		if item.Action == change.Adopt {
			adopted = append(adopted, item.Object.Name)
		}
	}
	assert.Equal(t, []string{"theirs"}, adopted)
	assert.Equal(t, map[string]Action{"ConfigMap/ours": Configured, "ConfigMap/theirs": Adopted}, actions(f.mustApply(set)))
}

// TestPlanShowsFieldsRestoredByWebhooks: in a dry run, a webhook of a former manager hides a
// removal that happens once the webhook no longer exists. Its own additions have no owner and stay.
func TestPlanShowsFieldsRestoredByWebhooks(t *testing.T) {
	f := newFixture(t)
	webhook := f.registerMutatingWebhook(`[
		{"op": "add", "path": "/spec/template/spec/tolerations", "value": [{"key": "a", "operator": "Exists"}]},
		{"op": "add", "path": "/spec/template/spec/topologySpreadConstraints", "value": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]}]`)
	theirs := f.deployment("o", 1)
	require.NoError(t, unstructured.SetNestedSlice(theirs.Object, []any{map[string]any{"key": "a", "operator": "Exists"}}, "spec", "template", "spec", "tolerations"))
	require.NoError(t, unstructured.SetNestedField(theirs.Object, int64(30), "spec", "template", "spec", "terminationGracePeriodSeconds"))
	f.createBy("gardener-resource-manager", theirs)
	before := f.get(theirs)
	require.Len(t, nested(before, "spec", "template", "spec", "topologySpreadConstraints"), 1, "the webhook was asked")

	set := f.set(f.deployment("o", 1))
	set.Force = false
	item, err := f.planOne(set)
	require.NoError(t, err)
	assert.Equal(t, change.Adopt, item.Action)
	assert.Empty(t, inSpec(item.Fields), "the webhook puts it back")
	require.Len(t, item.WebhookFields, 1, "defaults come back by themselves, and what nobody owns stays")
	assert.Equal(t, "spec.template.spec.tolerations", item.WebhookFields[0].Path)
	assert.Equal(t, "gardener-resource-manager", item.WebhookFields[0].Manager)
	assert.Nil(t, item.WebhookFields[0].New)

	require.NoError(t, f.resource(webhook).Delete(f.ctx, webhook.GetName(), metav1.DeleteOptions{}))
	f.waitUntilNotMutated()
	item, err = f.planOne(set)
	require.NoError(t, err)
	assert.Empty(t, item.WebhookFields, "nobody puts it back")
	foreseen := inSpec(item.Fields)
	f.mustApply(set)
	assert.Equal(t, []string{"spec.template.spec.tolerations"}, foreseen)
	assert.Equal(t, foreseen, inSpec(changedFields(before, f.get(theirs))))
}

// inSpec returns the paths of fields in the spec.
func inSpec(fields []change.Field) []string {
	var out []string
	for _, f := range fields {
		if strings.HasPrefix(f.Path, "spec.") {
			out = append(out, f.Path)
		}
	}
	return out
}

// registerMutatingWebhook registers a webhook that changes the Deployments of the namespace, and
// waits until the server calls it.
func (f *fixture) registerMutatingWebhook(patch string) *unstructured.Unstructured {
	f.Helper()
	asked := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: []byte(patch), PatchType: new(admissionv1.PatchTypeJSONPatch)}
		_ = json.NewEncoder(w).Encode(review)
	}))
	f.Cleanup(asked.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: asked.Certificate().Raw})
	webhook := f.object(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: NS}
webhooks:
- name: test.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: %q, caBundle: CA}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  rules: [{apiGroups: [apps], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [deployments]}]`, asked.URL))
	hooks := nested(webhook, "webhooks").([]any)
	hooks[0].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = base64.StdEncoding.EncodeToString(authority)
	f.create(webhook)
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.resource(webhook).Delete(ctx, webhook.GetName(), metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			require.NoError(f, err)
		}
	})
	require.Eventually(f, f.isMutated, 30*time.Second, 50*time.Millisecond, "the server does not ask the webhook")
	return webhook
}

func (f *fixture) waitUntilNotMutated() {
	f.Helper()
	require.Eventually(f, func() bool { return !f.isMutated() }, 30*time.Second, 50*time.Millisecond, "the server still asks the webhook")
}

// isMutated reports whether a webhook changes a new Deployment.
func (f *fixture) isMutated() bool {
	made, err := f.resource(f.deployment("probe", 1)).Create(f.ctx, f.deployment("probe", 1), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err == nil && nested(made, "spec", "template", "spec", "tolerations") != nil
}
