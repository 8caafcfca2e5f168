// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

func TestUnreachableClusterFailsFast(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	c, err := newCluster("seed-1", &rest.Config{Host: "https://" + address}, ClusterOptions{})
	require.NoError(t, err)
	defer c.Close()
	objects := make([]*unstructured.Unstructured, 100)
	for i := range objects {
		objects[i] = parse(t, "x", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: NS}}`, i))
	}
	set := Set{Name: "x/set", FieldManager: "pergola", Objects: objects}
	began := time.Now()
	for range 5 {
		r, err := newEngine(Options{}).Apply(t.Context(), c, set, NewConfigMapInventory(c, "x", "i", nil), ApplyOptions{})
		assert.Equal(t, ReasonUnreachable, ReasonOf(err))
		assert.ErrorContains(t, err, "cluster seed-1")
		assert.ErrorContains(t, err, address)
		assert.Equal(t, 100, r.Count(Failed))
		var all Errors
		require.ErrorAs(t, err, &all)
		assert.Len(t, all, 1, "said once, not a hundred times")
	}
	assert.Less(t, time.Since(began), 4*time.Second)
	assert.LessOrEqual(t, c.Requests()["discovery"], 2, "the breaker is open")
}

// TestUnreachableClusterIsNotUnchanged: a server that disappears after everything was cached must
// not look like an unchanged cluster.
func TestUnreachableClusterIsNotUnchanged(t *testing.T) {
	f := newFixture(t)
	proxy := newProxy(t)
	cfg := rest.CopyConfig(server.config)
	cfg.Host = "https://" + proxy.Addr().String()
	cfg.TLSClientConfig.ServerName = "127.0.0.1"
	c, err := newCluster("proxied", cfg, ClusterOptions{Cooldown: 50 * time.Millisecond})
	require.NoError(t, err)
	defer c.Close()
	set := f.set(f.configMap("c", "x"))
	inv := NewConfigMapInventory(c, f.ns, "inventory", nil)
	_, err = f.e.Apply(f.ctx, c, set, inv, ApplyOptions{})
	require.NoError(t, err)
	proxy.stop()
	f.eventually("the watches notice", c.transport.hasLastFailed)
	_, err = f.e.Apply(f.ctx, c, set, inv, ApplyOptions{})
	assert.Equal(t, ReasonUnreachable, ReasonOf(err))
	proxy.start()
	f.eventually("it is back", func() bool {
		_, err = f.e.Apply(f.ctx, c, set, inv, ApplyOptions{})
		return err == nil
	})
}

func TestCancelEndsSoonWithTheInventoryWritten(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(f.ctx)
	var objects []*unstructured.Unstructured
	for i := range 400 {
		objects = append(objects, f.configMap(fmt.Sprintf("c%d", i), "x"))
	}
	var ended time.Time
	var once sync.Once
	r, err := f.e.Apply(ctx, f.c, f.set(objects...), f.inv, ApplyOptions{OnObject: func(o ObjectResult) {
		if o.Action == Created {
			once.Do(func() {
				ended = time.Now()
				cancel()
			})
		}
	}})
	assert.Less(t, time.Since(ended), 2*time.Second)
	assert.Equal(t, ReasonCanceled, ReasonOf(err))
	assert.Positive(t, r.Count(Created))
	assert.Positive(t, r.Count(Failed))
	entries, err := f.inv.Load(f.ctx)
	require.NoError(t, err)
	assert.Len(t, entries, 400)
	applied := 0
	for _, e := range entries {
		if e.AppliedDigest != "" {
			applied++
		}
	}
	assert.Equal(t, r.Count(Created), applied)

	// The next run applies the missing objects.
	r = f.mustApply(f.set(objects...))
	assert.True(t, r.Complete)
	assert.GreaterOrEqual(t, r.Count(Unchanged), applied, "more, where the server was done and the answer was lost")
}

func TestSecretValuesAreInNoErrorAndNoInventory(t *testing.T) {
	f := newFixture(t)
	const value = "hunter2-very-secret"
	for name, secret := range map[string]string{
		"invalid key":     `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, stringData: {"no good key": VALUE}}`,
		"no base64":       `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, data: {a: "VALUE!"}}`,
		"wrong type":      `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, data: {a: {VALUE: VALUE}}}`,
		"invalid type":    `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: VALUE}}`,
		"value in a name": `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS, labels: {a: "VALUE with spaces"}}}`,
		"unknown field":   `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, password: VALUE}`,
	} {
		t.Run(name, func(t *testing.T) {
			o := f.object(replaceText(secret, "VALUE", value))
			r, err := f.apply(f.set(o))
			require.Error(t, err)
			text, _ := json.Marshal(r)
			assert.NotContains(t, string(text)+err.Error()+fmt.Sprintf("%#v %+v", err, err), "hunter2")
			assert.Contains(t, err.Error(), "Secret "+f.ns+"/s")
			_, err = f.e.Plan(f.ctx, f.c, f.set(o), f.inv, ApplyOptions{})
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
	good := f.object(replaceText(`{apiVersion: v1, kind: Secret, metadata: {name: good, namespace: NS, annotations: {a: VALUE}}, stringData: {a: VALUE}}`, "VALUE", value))
	f.mustApply(f.set(good))
	entries, err := f.inv.Load(f.ctx)
	require.NoError(t, err)
	// No part of the inventory depends on the value, so no one can guess it from there.
	other := f.object(replaceText(`{apiVersion: v1, kind: Secret, metadata: {name: good, namespace: NS, annotations: {a: VALUE}}, stringData: {a: other}}`, "VALUE", value))
	assert.Equal(t, Configured, f.mustApply(f.set(other)).Objects[0].Action)
	after, err := f.inv.Load(f.ctx)
	require.NoError(t, err)
	assert.Equal(t, entries, after)
	text, _ := json.Marshal(after)
	assert.NotContains(t, string(text), "hunter2")
}

func TestReasonsOfARealServer(t *testing.T) {
	f := newFixture(t)
	t.Run("forbidden", func(t *testing.T) {
		cfg := rest.CopyConfig(server.config)
		cfg.Impersonate = rest.ImpersonationConfig{UserName: "nobody-special"}
		c, err := newCluster("test", cfg, ClusterOptions{})
		require.NoError(t, err)
		defer c.Close()
		_, err = f.e.Apply(f.ctx, c, f.set(f.configMap("c", "x")), NewMemoryInventory(), ApplyOptions{})
		var e *ObjectError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, ReasonForbidden, e.Reason)
		assert.Contains(t, e.Hint, `allow user "nobody-special" the verb patch on configmaps in namespace `+f.ns+` by a Role or ClusterRole: kubectl -n `+f.ns+` create role `)
	})
	t.Run("unauthorized", func(t *testing.T) {
		cfg := rest.AnonymousClientConfig(server.config)
		cfg.BearerToken = "wrong"
		c, err := newCluster("test", cfg, ClusterOptions{})
		require.NoError(t, err)
		defer c.Close()
		_, err = f.e.Apply(f.ctx, c, f.set(f.configMap("c", "x")), NewMemoryInventory(), ApplyOptions{})
		assert.Equal(t, ReasonUnauthorized, ReasonOf(err), err)
	})
	t.Run("terminating namespace", func(t *testing.T) {
		ns := f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: NS-going}}`)
		f.create(ns)
		require.NoError(t, f.resource(ns).Delete(f.ctx, ns.GetName(), deleteNow))
		o := f.configMap("c", "x")
		o.SetNamespace(ns.GetName())
		_, err := f.apply(f.set(o))
		assert.Equal(t, ReasonTerminatingNamespace, ReasonOf(err), err)
	})
	t.Run("webhook", func(t *testing.T) {
		hook := f.object(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS}
webhooks:
- name: guard.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 1
  clientConfig: {url: "https://127.0.0.1:1/"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [services]}]
`)
		f.create(hook)
		defer func() { _ = f.resource(hook).Delete(f.ctx, hook.GetName(), deleteNow) }()
		service := f.object(`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {ports: [{port: 1}]}}`)
		f.eventually("the webhook is in use", func() bool {
			_, err := f.e.Plan(f.ctx, f.c, f.set(service), NewMemoryInventory(), ApplyOptions{})
			return err != nil
		})
		_, err := f.apply(f.set(service))
		var e *ObjectError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, ReasonWebhookDenied, e.Reason)
		assert.Equal(t, "guard.example.com", e.Webhook)
	})
}

func TestRequestTimeout(t *testing.T) {
	hang := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer slow.Close()
	defer close(hang)
	c, err := newCluster("slow", &rest.Config{Host: slow.URL}, ClusterOptions{RequestTimeout: 50 * time.Millisecond})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.GetLive(t.Context(), Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"})
	var down *UnreachableError
	require.ErrorAs(t, err, &down)
	assert.ErrorContains(t, err, "no answer within 50ms")
}

// TestUnansweredWatchIsReplaced: a server or proxy may accept a watch and never answer it. The
// cache then opens another watch, and requests of other kinds continue meanwhile.
func TestUnansweredWatchIsReplaced(t *testing.T) {
	f := newFixture(t)
	var swallowed atomic.Int32
	config := rest.CopyConfig(server.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if verbOf(req) == "watch" && swallowed.Add(1) <= 2 {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return next.RoundTrip(req)
		})
	})
	c, err := newCluster("lazy", config, ClusterOptions{RequestTimeout: time.Second})
	require.NoError(t, err)
	defer c.Close()
	one := f.configMap("one", "1")
	_, err = c.List(f.ctx, one.GroupVersionKind(), f.ns, nil)
	require.NoError(t, err)
	one.SetLabels(map[string]string{gardenerKeys().ManagedByLabel: "gardener"})
	f.createBy("somebody", one)
	_, err = c.GetLive(f.ctx, RefOf(one))
	require.NoError(t, err)
	f.eventually("what came after it tells", func() bool { return c.Cached(RefOf(one)) != nil })
}
