// SPDX-License-Identifier: Apache-2.0

package adoption

// This file creates the recorded objects of gardener-operator in API servers.

import (
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/secrets"
)

// upstream is a landscape that gardener-operator runs, represented by its objects.
type upstream struct {
	*stage
	// replacements maps addresses and names of the recording to those of the test.
	replacements map[string]string
	mapper       map[string]*restmapper.DeferredDiscoveryRESTMapper
	// host and port are the address of the Gardener API.
	host net.IP
	port int64
	// rendered are the landscape's objects by cluster and key, rendered with live data.
	rendered map[string]*unstructured.Unstructured
	// recording are the objects of upstream as they were created.
	recording upstreamRecording
}

// gardenAPI is the cluster that serves the Gardener API behind the virtual garden.
const gardenAPI = "garden-api"

func newUpstream(t *testing.T, dir string) *upstream {
	t.Helper()
	u := &upstream{host: hostAddress(t), stage: &stage{T: t, world: startClusters(t, true, landscape.Virtual, gardenAPI), dir: filepath.Join(t.TempDir(), "landscape"), api: map[string]dynamic.Interface{}}, replacements: map[string]string{}, mapper: map[string]*restmapper.DeferredDiscoveryRESTMapper{}}
	for name, config := range u.world.configs {
		somebody := rest.CopyConfig(config)
		somebody.UserAgent = "somebody"
		client, err := dynamic.NewForConfig(somebody)
		require.NoError(t, err)
		u.api[name] = client
		found, err := discovery.NewDiscoveryClientForConfig(config)
		require.NoError(t, err)
		u.mapper[name] = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	}
	u.writeLandscape(dir)
	return u
}

// writeLandscape writes the landscape: upstream's example without its Secrets, which exist in the
// cluster.
func (u *upstream) writeLandscape(dir string) {
	u.Helper()
	for _, name := range []string{"garden", "components/garden/kube-apiserver", ".sops"} {
		require.NoError(u, os.MkdirAll(u.path(name), 0o755))
	}
	u.write("components/garden/kube-apiserver/kustomization.yaml", noWaitOverlay)
	u.write("landscape.yaml", `
apiVersion: landscape.pergola.dev/v1alpha1
kind: Landscape
metadata: {name: local}
spec:
  catalogue: {version: `+components.Version+`}
  gardenAPI: aggregated
  clusters:
    runtime: {context: pergola-runtime}
    virtual: {context: pergola-virtual}
  external:
  - {kind: Secret, namespace: garden, name: garden-dns-local}
  - {kind: Secret, namespace: garden, name: virtual-garden-etcd-main-backup-local}
`)
	raw, err := os.ReadFile(filepath.Join(dir, "objects", "inputs", "garden-example.yaml"))
	require.NoError(u, err)
	for _, doc := range strings.Split(string(raw), "\n---\n") {
		if strings.Contains(doc, "kind: Garden\n") {
			u.write("garden/garden.yaml", doc)
		}
	}
}

func (u *upstream) resource(cluster string, o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapping, err := u.mapper[cluster].RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		return nil, err
	}
	r := u.api[cluster].Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		o.SetNamespace("")
		return r, nil
	}
	return r.Namespace(o.GetNamespace()), nil
}

// createObjects creates objects as upstream's managers do. It retries objects that depend on
// others.
func (u *upstream) createObjects(all []recordedObject) {
	u.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var left []recordedObject
		var problems []string
		for _, r := range all {
			resource, err := u.resource(r.cluster, r.Unstructured)
			if err == nil {
				manager := "gardener-operator"
				if r.managedResource != "" {
					manager = "gardener-resource-manager"
				}
				_, err = resource.Create(u.context(), r.Unstructured, metav1.CreateOptions{FieldManager: manager})
			}
			if err != nil && !apierrors.IsAlreadyExists(err) {
				left = append(left, r)
				problems = append(problems, r.cluster+" "+r.key()+": "+err.Error())
			}
		}
		if len(left) == 0 {
			return
		}
		require.True(u, time.Now().Before(deadline), "%s", strings.Join(problems, "\n"))
		for _, mapper := range u.mapper {
			mapper.Reset()
		}
		all = left
	}
}

// landscape loads the files.
func (u *upstream) landscape() *landscapes.Landscape {
	u.Helper()
	l, violations, err := landscapes.Load(context.Background(), u.dir, landscapes.Options{})
	require.NoError(u, err)
	require.Empty(u, violations)
	return l
}

// gardenInput returns the Garden of the files.
func (u *upstream) gardenInput() render.Input {
	u.Helper()
	inputs, err := render.Owners(u.landscape(), render.WithTime(time.Now()))
	require.NoError(u, err)
	require.Len(u, inputs, 1)
	return inputs[0]
}

// makeSecrets generates the recorded Secrets with gardener-operator's secrets manager. Names and
// labels of Secrets that no other Secret signs equal the recording.
func (u *upstream) makeSecrets(result render.Result) {
	u.Helper()
	requests, err := result.Secrets()
	require.NoError(u, err)
	configs, err := secrets.ParseRequests("garden", requests)
	require.NoError(u, err)
	var renewed []string
	for _, c := range configs {
		if c.Kind == secrets.KindCA && c.IgnoreOldSecretsAfter != nil {
			renewed = append(renewed, c.Name)
		}
	}
	config := rest.CopyConfig(u.world.configs[landscape.Runtime])
	config.UserAgent = "gardener-operator"
	client, err := kubernetes.NewForConfig(config)
	require.NoError(u, err)
	_, err = secrets.New(secrets.NewStore(client), "garden", "gardener-operator", clock.RealClock{}, secrets.WithCAAutoRotation(renewed...)).GenerateAll(u.context(), configs)
	require.NoError(u, err)
	made, err := client.CoreV1().Secrets("garden").List(u.context(), metav1.ListOptions{})
	require.NoError(u, err)
	there, byContent := map[string]corev1.Secret{}, map[string]string{}
	for _, s := range made.Items {
		name := s.Labels["name"]
		if s.Labels["managed-by"] != "secrets-manager" {
			byContent[hashSuffix.ReplaceAllString(s.Name, "")] = s.Name
			continue
		}
		there[name] = s
		if u.recording.secrets[name] == nil {
			require.NoError(u, client.CoreV1().Secrets("garden").Delete(u.context(), s.Name, metav1.DeleteOptions{}), "upstream has none of it")
		}
	}
	for _, r := range u.recording.objects {
		if made := byContent[hashSuffix.ReplaceAllString(r.GetName(), "")]; r.GetKind() == "Secret" && made != "" {
			u.replacements[r.GetName()] = made
		}
	}
	for name, want := range u.recording.secrets {
		have, is := there[name]
		if !is {
			assert.Equal(u, "shoot-access-gardener-resource-manager-bootstrap", name, "nothing asks for it; this one is for ten minutes")
			continue
		}
		u.replacements[want.GetName()] = have.Name
		assert.Equal(u, slices.Sorted(maps.Keys(want.GetLabels())), slices.Sorted(maps.Keys(have.Labels)), "labels of Secret %s", have.Name)
		data, _, _ := unstructured.NestedMap(want.Object, "data")
		assert.Equal(u, slices.Sorted(maps.Keys(data)), slices.Sorted(maps.Keys(have.Data)), "keys of Secret %s", have.Name)
		if want.GetLabels()["checksum-of-signing-ca"] == "" && want.GetLabels()["bundle-for"] == "" && name != "generic-token-kubeconfig" {
			assert.Equal(u, want.GetName(), have.Name)
			assert.Equal(u, want.GetLabels()["checksum-of-config"], have.Labels["checksum-of-config"], have.Name)
		}
	}
}

// deploy creates all recorded objects in the clusters, and adds played pods and a
// gardener-apiserver that answers.
func (u *upstream) deploy(dir string) {
	u.Helper()
	images, err := render.ReadImageVector(components.FS)
	require.NoError(u, err)
	for _, image := range images {
		if image.Name == apiServerImage {
			// the recording comes from a build without a release
			u.replacements["v0.0.0-master+$Format:%H$"] = image.Tag
		}
	}
	u.recording = readRecording(u.T, dir, strings.NewReplacer())

	u.Log("definitions, namespaces, the Garden")
	in := u.gardenInput()
	in.Facts.Clusters = map[string]render.ClusterFact{"runtime": {KubernetesVersion: "1.34.1"}}
	first, err := render.Render(in, render.Options{Catalogue: components.FS})
	require.NoError(u, err)
	var definitions []recordedObject
	for _, b := range first.Bundles {
		for _, o := range b.Objects {
			if o.GetKind() == "CustomResourceDefinition" && b.Component == "garden/crds" {
				definitions = append(definitions, recordedObject{o.Unstructured.DeepCopy(), landscape.Runtime, ""})
			}
		}
	}
	definitions = append(definitions, u.crdObjects(landscape.Runtime, "operator.gardener.cloud_")...)
	definitions = append(definitions, u.crdObjects(gardenAPI, "core.gardener.cloud_", "seedmanagement.", "operations.", "security.")...)
	u.createObjects(definitions)
	carriers := map[string]recordedObject{}
	for _, r := range u.recording.objects {
		if r.GetKind() == "ManagedResource" {
			carriers[r.GetNamespace()+"/"+r.GetName()] = r
		}
	}
	var namespaces []recordedObject
	for _, r := range u.recording.objects {
		if r.GetKind() == "Namespace" {
			namespaces = append(namespaces, u.completeRecorded(r, carriers))
		}
	}
	namespaces = append(namespaces, recordedObject{u.parseObject("{apiVersion: v1, kind: Namespace, metadata: {name: garden}}"), gardenAPI, ""})
	u.createObjects(namespaces)
	for _, r := range u.recording.objects {
		if r.GetKind() == "Garden" {
			u.createObjects([]recordedObject{u.completeRecorded(r, nil)})
		}
	}
	u.createObjects([]recordedObject{
		{u.parseObject(`{apiVersion: v1, kind: Secret, metadata: {name: garden-dns-local, namespace: garden}, type: Opaque}`), landscape.Runtime, ""},
		{u.parseObject(`{apiVersion: v1, kind: Secret, metadata: {name: virtual-garden-etcd-main-backup-local, namespace: garden}, type: Opaque, stringData: {hostPath: /etc/gardener/local-backupbuckets}}`), landscape.Runtime, ""},
	})
	garden := u.get(landscape.Runtime, gardens, "", "local")
	u.replacements["11111111-2222-3333-4444-555555555555"] = string(garden.GetUID())

	u.Log("secrets, Services and their addresses")
	u.makeSecrets(first)
	u.serveGardenAPI()
	var services []recordedObject
	for _, r := range u.recording.objects {
		if r.GetKind() == "Service" {
			removeZeroTargetPorts(r.Unstructured)
			services = append(services, u.completeRecorded(r, carriers))
		}
	}
	u.createObjects(services)
	u.replacements["1.2.3.4"] = u.waitForGateway()

	u.Log("what is rendered with all that")
	c := u.newConverger(0)
	_, err = c.Plan(u.context())
	u.rendered = map[string]*unstructured.Unstructured{}
	for _, place := range c.RenderedObjects() {
		for _, o := range place.Bundle.Objects {
			u.rendered[place.Cluster+" "+keyOf(o.Unstructured)] = o.Unstructured
		}
	}
	c.Close()
	require.NotEmpty(u, u.rendered, "%v", err)

	u.Log("everything else")
	for u.findRenamed(dir) {
	}
	u.recording = readRecording(u.T, dir, u.replacer())
	content := map[string][]recordedObject{}
	var rest []recordedObject
	for _, r := range u.recording.objects {
		switch r.GetKind() {
		case "ManagedResource", "CustomResourceDefinition", "Namespace", "Garden":
			continue
		}
		if slices.Contains(unregisteredWebhooks, r.GetKind()+" "+r.GetName()) {
			continue
		}
		removeZeroTargetPorts(r.Unstructured)
		r = u.completeRecorded(r, carriers)
		u.patchEndpoints(r)
		if r.GetKind() != "Service" {
			rest = append(rest, r)
		}
		if r.managedResource != "" {
			content[r.managedResource] = append(content[r.managedResource], r)
		}
	}
	u.createObjects(u.admitObjects(rest))
	for _, name := range slices.Sorted(maps.Keys(carriers)) {
		u.createManagedResourceData(carriers[name], content[name])
	}
	u.deployGardenerOperator()
	_, err = u.api[landscape.Runtime].Resource(gardens).Patch(u.context(), "local", types.MergePatchType, []byte(`{"status":{"observedGeneration":1,
"lastOperation":{"type":"Reconcile","state":"Succeeded","progress":100,"description":"done","lastUpdateTime":"2026-01-01T00:00:00Z"}}}`), metav1.PatchOptions{FieldManager: "gardener-operator"}, "status")
	require.NoError(u, err)
}

// crdObjects returns our CRDs whose file names have one of the prefixes.
func (u *upstream) crdObjects(cluster string, prefixes ...string) []recordedObject {
	u.Helper()
	var out []recordedObject
	files, err := filepath.Glob(filepath.Join(u.world.Root, "api", "crds", "*.yaml"))
	require.NoError(u, err)
	for _, file := range files {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(filepath.Base(file), prefix) }) {
			raw, err := os.ReadFile(file)
			require.NoError(u, err)
			out = append(out, recordedObject{u.parseObject(string(raw)), cluster, ""})
		}
	}
	require.NotEmpty(u, out)
	return out
}

func (u *upstream) parseObject(text string) *unstructured.Unstructured {
	u.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(u, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

// waitForGateway waits for the address of the gateway.
func (u *upstream) waitForGateway() string {
	u.Helper()
	var address string
	require.Eventually(u, func() bool {
		service := u.get(landscape.Runtime, servicesResource, "virtual-garden-istio-ingress", "istio-ingressgateway")
		found, _, _ := unstructured.NestedSlice(objectMap(service), "status", "loadBalancer", "ingress")
		if len(found) > 0 {
			address, _ = found[0].(map[string]any)["ip"].(string)
		}
		return address != ""
	}, time.Minute, 200*time.Millisecond)
	return address
}

var (
	servicesResource = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	secretsResource  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)
