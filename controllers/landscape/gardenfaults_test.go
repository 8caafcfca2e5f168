// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"io"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// faultyCatalogue is the catalogue of derived Gardens with possible faults before the virtual
// garden: a reference, a load balancer, etcd-druid and its Etcd.
func faultyCatalogue(t *testing.T) fs.FS {
	t.Helper()
	out := derivedCatalogue(t, caRequest).(fstest.MapFS)
	component := func(name, condition, object string) {
		out["garden/"+name+"/component.cue"] = &fstest.MapFile{Data: []byte("package component\n\ncomponent: {\n\tcondition: \"" + condition + "\"\n\tbundles: \"" + name +
			"\": {cluster: \"runtime\", direct: true, source: cue: [" + object + "]}\n}\n")}
	}
	component("gateway", "RuntimeComponentsHealthy", `{apiVersion: "v1", kind: "Service", metadata: {name: "gateway", namespace: "default"}, spec: {type: "LoadBalancer", ports: [{port: 443}], selector: app: "gateway"}}`)
	component("etcd-druid", "RuntimeComponentsHealthy", `{apiVersion: "apps/v1", kind: "Deployment", metadata: {name: "etcd-druid", namespace: "garden"}, spec: {selector: matchLabels: app: "druid",
		template: {metadata: labels: app: "druid", spec: containers: [{name: "druid", image: "druid"}]}}}`)
	component("etcd-main", "VirtualComponentsHealthy", `{apiVersion: "druid.gardener.cloud/v1alpha1", kind: "Etcd", metadata: {name: "virtual-garden-etcd-main", namespace: "garden"},
		spec: {replicas: 1, labels: a: "b", selector: matchLabels: a: "b", etcd: {}, backup: {}}}`)
	flow := string(out["garden/flow.cue"].Data)
	before := `first: apply: ["first"]`
	require.Contains(t, flow, before)
	flow = strings.Replace(flow, before+"\n\"init-virtual\": {await: \"virtual-garden-answers\", after: first: \"applied\"}\n", before+`
references: await: "references-exist"
gateway: {apply: ["gateway"], after: first: "applied"}
"etcd-druid": {apply: ["etcd-druid"], after: first: "applied"}
"etcd-main": {request: ["etcd-main"], after: {"etcd-druid": "healthy", references: "healthy"}}
"init-virtual": {await: "virtual-garden-answers", after: {"etcd-main": "healthy", gateway: "healthy"}}
`, 1)
	require.Contains(t, flow, "etcd-druid")
	flow = strings.Replace(flow, "first: {remove: [\"first\"], after: inside: \"healthy\"}", "first: {remove: [\"first\", \"gateway\", \"etcd-druid\", \"etcd-main\"], after: inside: \"healthy\"}", 1)
	out["garden/flow.cue"] = &fstest.MapFile{Data: []byte(flow)}
	return out
}

// tcpProxy is a TCP proxy to a server that can be cut.
type tcpProxy struct {
	testing.TB
	target, address string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

func newTCPProxy(t *testing.T, to string) *tcpProxy {
	t.Helper()
	l := &tcpProxy{TB: t, target: to, address: "127.0.0.1:0"}
	l.listen()
	t.Cleanup(l.cut)
	return l
}

func (l *tcpProxy) listen() {
	l.Helper()
	at, err := net.Listen("tcp", l.address)
	require.NoError(l, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener, l.address = at, at.Addr().String()
	go func() {
		for {
			from, err := at.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", l.target)
			if err != nil {
				from.Close()
				continue
			}
			l.mu.Lock()
			l.conns = append(l.conns, from, to)
			l.mu.Unlock()
			go copyAll(from, to)
			go copyAll(to, from)
		}
	}()
}

func copyAll(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
}

func (l *tcpProxy) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener.Close()
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// faultyGarden is a Garden with injected faults.
type faultyGarden struct {
	*derivedLandscape
	objects dynamic.Interface
}

func (f *faultyGarden) resourceClient(group, version, plural, namespace string) dynamic.ResourceInterface {
	r := f.objects.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural})
	if namespace == "" {
		return r
	}
	return r.Namespace(namespace)
}

func (f *faultyGarden) gardens() dynamic.ResourceInterface {
	return f.resourceClient("operator.gardener.cloud", "v1alpha1", "gardens", "")
}

// applyFails applies and expects a failure with these texts, also in the status of the Garden.
// Conditions have the form "Status Reason".
func (f *faultyGarden) applyFails(conditions map[string]string, says ...string) {
	f.Helper()
	f.converger.members.reconciler.StepTimeout = 1500 * time.Millisecond
	_, err := f.converger.Apply(testContext(f.T))
	require.Error(f, err)
	operation, got := f.status()
	assert.Equal(f, "Reconcile Error", operation["type"].(string)+" "+operation["state"].(string))
	for _, text := range says {
		assert.ErrorContains(f, err, text)
		assert.Contains(f, operation["description"], text)
	}
	for name, want := range conditions {
		assert.Equal(f, want, got[name], name)
	}
}

// applySucceeds applies after the cause is removed, and expects success.
func (f *faultyGarden) applySucceeds() {
	f.Helper()
	f.converger.members.reconciler.StepTimeout = 2 * time.Minute
	_, err := f.converger.Apply(testContext(f.T))
	require.NoError(f, err)
	operation, got := f.status()
	assert.Equal(f, "Reconcile Succeeded", operation["type"].(string)+" "+operation["state"].(string))
	assert.Equal(f, map[string]string{
		"VirtualGardenAPIServerAvailable": "True HealthzRequestSucceeded", "RuntimeComponentsHealthy": "True RuntimeComponentsRunning", "VirtualComponentsHealthy": "True VirtualComponentsRunning",
	}, got)
}

func (f *faultyGarden) status() (map[string]any, map[string]string) {
	f.Helper()
	garden, err := f.gardens().Get(testContext(f.T), "derived", metav1.GetOptions{})
	require.NoError(f, err)
	operation, _, err := unstructured.NestedMap(garden.Object, "status", "lastOperation")
	require.NoError(f, err)
	list, _, err := unstructured.NestedSlice(garden.Object, "status", "conditions")
	require.NoError(f, err)
	conditions := map[string]string{}
	for _, item := range list {
		c := item.(map[string]any)
		conditions[c["type"].(string)] = c["status"].(string) + " " + c["reason"].(string)
	}
	return operation, conditions
}

// setStatus writes the status of an object as its controller would.
func (f *faultyGarden) setStatus(r dynamic.ResourceInterface, name, text string) {
	f.Helper()
	live, err := r.Get(testContext(f.T), name, metav1.GetOptions{})
	require.NoError(f, err)
	var written map[string]any
	require.NoError(f, yaml.Unmarshal([]byte(text), &written))
	live.Object["status"] = written["status"]
	_, err = r.UpdateStatus(testContext(f.T), live, metav1.UpdateOptions{})
	require.NoError(f, err)
}

// TestGardenFaults checks that each fault of a Garden leads to its own condition and error, and
// that independent steps proceed. After the cause is removed, the next reconciliation succeeds
// without help.
func TestGardenFaults(t *testing.T) {
	needsServer(t)
	garden := strings.Replace(derivedGarden, "kubernetes: {version: 1.34.1}", "kubernetes: {version: 1.34.1, kubeAPIServer: {auditWebhook: {kubeconfigSecretName: audit}}}", 1)
	f := &faultyGarden{derivedLandscape: newDerivedWithCatalogue(t, map[string]string{"garden.yaml": garden}, faultyCatalogue(t))}
	f.deleteObjectsAtEnd("inside")
	var err error
	f.objects, err = dynamic.NewForConfig(f.runtime)
	require.NoError(t, err)
	_, err = envtest.InstallCRDs(f.runtime, envtest.CRDInstallOptions{CRDs: append(crds.ByGroup("druid.gardener.cloud"), crds.ByGroup("operator.gardener.cloud")...)})
	require.NoError(t, err)
	ctx := testContext(t)
	secrets := f.client.CoreV1().Secrets("garden")

	t.Log("a second Garden")
	declared := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(derivedGarden), &declared.Object))
	declared.SetName("earlier")
	declared.SetFinalizers([]string{"gardener.cloud/operator"})
	_, err = f.gardens().Create(ctx, declared, metav1.CreateOptions{})
	require.NoError(t, err)
	f.applyFails(nil, `the Garden "earlier" already exists, and only one is possible`)
	list, err := secrets.List(ctx, metav1.ListOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
		assert.Empty(t, list.Items, "nothing is made for it")
	}
	require.NoError(t, f.gardens().Delete(ctx, "earlier", metav1.DeleteOptions{}))
	_, err = f.gardens().Patch(ctx, "earlier", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)

	t.Log("a Secret that is missing, a load balancer that nobody makes, and an etcd-druid that does not become ready")
	f.applyFails(map[string]string{"RuntimeComponentsHealthy": "False DeploymentUnhealthy", "VirtualComponentsHealthy": "False EtcdMissing"},
		"object not found: Secret garden/audit in cluster runtime (spec.virtualCluster.kubernetes.kubeAPIServer.auditWebhook.kubeconfigSecretName)",
		"Service default/gateway", "the load balancer has no address yet", "Deployment garden/etcd-druid")
	_, err = f.client.CoreV1().ConfigMaps("default").Get(ctx, "first", metav1.GetOptions{})
	require.NoError(t, err, "what needs none of it is done")
	_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "audit"}, StringData: map[string]string{"kubeconfig": "{apiVersion: v1, kind: Config}"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	f.applyFails(map[string]string{"RuntimeComponentsHealthy": "False DeploymentUnhealthy"}, "the load balancer has no address yet", "Deployment garden/etcd-druid")
	operation, _ := f.status()
	assert.NotContains(t, operation["description"], "Secret garden/audit")
	f.setStatus(f.resourceClient("apps", "v1", "deployments", "garden"), "etcd-druid", `status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [
		{type: Available, status: "True", lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"},
		{type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`)
	f.applyFails(map[string]string{"RuntimeComponentsHealthy": "False ServiceUnhealthy", "VirtualComponentsHealthy": "False EtcdUnhealthy"}, "the load balancer has no address yet", "Etcd garden/virtual-garden-etcd-main")
	f.setStatus(f.resourceClient("druid.gardener.cloud", "v1alpha1", "etcds", "garden"), "virtual-garden-etcd-main",
		`status: {observedGeneration: 1, ready: true, conditions: [{type: AllMembersUpdated, status: "True", lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z", reason: x, message: x}]}`)
	f.applyFails(map[string]string{"RuntimeComponentsHealthy": "False ServiceUnhealthy"}, "the load balancer has no address yet")
	f.setStatus(f.resourceClient("", "v1", "services", "default"), "gateway", `status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}`)
	at, err := url.Parse(server.config.Host)
	require.NoError(t, err)
	way := newTCPProxy(t, at.Host)
	f.createAccessAt("https://" + way.address)
	f.applySucceeds()

	t.Log("an API server of the virtual garden that dies after it was found ready")
	inside := resourceClient(t, configMapResource, "default")
	require.NoError(t, inside.Delete(ctx, "inside", metav1.DeleteOptions{}))
	f.onEvent = func(e owner.Event) {
		if e.Node == "init-virtual" && e.State == flow.Healthy {
			way.cut()
		}
	}
	f.applyFails(map[string]string{"VirtualGardenAPIServerAvailable": "False VirtualGardenAPIServerDown", "RuntimeComponentsHealthy": "True RuntimeComponentsRunning"}, "cluster virtual", "Unreachable")
	f.onEvent = nil
	way.listen()
	f.applySucceeds()
	_, err = inside.Get(ctx, "inside", metav1.GetOptions{})
	require.NoError(t, err)

	t.Log("a CA that has expired")
	ca := func() corev1.Secret {
		list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "name=ca,!bundle-for"})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		return list.Items[0]
	}
	old := ca()
	_, err = secrets.Patch(ctx, old.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"valid-until-time":"1"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	f.applySucceeds()
	assert.NotEqual(t, old.Data, ca().Data, "it is replaced")
	replaced := ca().Name
	f.applySucceeds()
	assert.Equal(t, replaced, ca().Name, "once")
}
