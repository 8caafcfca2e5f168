package adoption

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
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
	"github.com/pergola-dev/pergola/hack/corpus"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/secrets"
)

// recorded is one object that gardener-operator, or gardener-resource-manager for it, has written.
type recorded struct {
	*unstructured.Unstructured
	// cluster has it. carrier is the ManagedResource that it came by, NAMESPACE/NAME; empty for one that gardener-operator has written itself.
	cluster, carrier string
}

// key names an object without the hashes in its name, as render/testdata/corpus.yaml does.
func (r recorded) key() string { return keyOf(r.Unstructured) }

var hashSuffix = regexp.MustCompile(`-([0-9a-f]{8})(-[0-9a-f]{5})?$`)

func keyOf(o *unstructured.Unstructured) string {
	return o.GetKind() + "/" + o.GetNamespace() + "/" + hashSuffix.ReplaceAllString(o.GetName(), "-HASH")
}

// recording is all that was recorded for the example Garden.
type recording struct {
	objects []recorded
	// secrets are those of the secrets manager, by what they are for.
	secrets map[string]*unstructured.Unstructured
}

var inCarrier = regexp.MustCompile(`(?m)^# in ManagedResource (\S+)`)

// readRecording reads the corpus; replace says what the texts are here that were of the recording only.
func readRecording(t *testing.T, dir string, replace *strings.Replacer) recording {
	t.Helper()
	clusters := map[string]string{}
	table, err := os.ReadFile(filepath.Join(dir, "objects", "inventory.tsv"))
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		if c := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); c[0] == "garden" && c[2] == "reconcile-example" {
			clusters[c[5]+"/"+c[4]+" "+c[9]+"/"+c[10]+"/"+c[11]] = c[7]
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "objects", "garden", "*", "reconcile-example.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := recording{secrets: map[string]*unstructured.Unstructured{}}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, doc := range bytes.Split(raw, []byte("\n---\n")) {
			o, was := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
			text := replace.Replace(string(doc))
			require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object), file)
			if o.GetKind() == "" {
				continue
			}
			require.NoError(t, yaml.Unmarshal(doc, was), file)
			name := was.Name
			r := recorded{Unstructured: o}
			if in := inCarrier.FindStringSubmatch(text); in != nil {
				r.carrier = in[1]
			}
			r.cluster = clusters[cmp.Or(r.carrier, "/")+" "+o.GetKind()+"/"+o.GetNamespace()+"/"+name]
			switch {
			case o.GetKind() == "Secret" && o.GetLabels()["managed-by"] == "secrets-manager":
				out.secrets[o.GetLabels()["name"]] = o
			case o.GetKind() == "Secret" && strings.HasPrefix(name, "managedresource-"):
			default:
				require.NotEmpty(t, r.cluster, "where is %s?", r.key())
				out.objects = append(out.objects, r)
			}
		}
	}
	return out
}

// upstream is a landscape that gardener-operator runs, as far as objects say it.
type upstream struct {
	*stage
	// addresses of the recording, what they are here, and likewise names.
	texts  map[string]string
	mapper map[string]*restmapper.DeferredDiscoveryRESTMapper
	// host and port are where the Gardener API is served.
	host net.IP
	port int64
	// rendered are the objects of the landscape by cluster and key, as they are with what lives.
	rendered map[string]*unstructured.Unstructured
	// was are the objects of upstream as they were put into the clusters.
	was recording
}

// The cluster that serves the Gardener API, behind the virtual garden, as gardener-apiserver would.
const gardenAPI = "garden-api"

func newUpstream(t *testing.T, dir string) *upstream {
	t.Helper()
	u := &upstream{host: reachable(t), stage: &stage{T: t, world: up(t, true, landscape.Virtual, gardenAPI), dir: filepath.Join(t.TempDir(), "landscape"), api: map[string]dynamic.Interface{}}, texts: map[string]string{}, mapper: map[string]*restmapper.DeferredDiscoveryRESTMapper{}}
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
	u.declare(dir)
	return u
}

// declare writes the landscape: the example of upstream, whose Secrets are in the cluster by hand.
func (u *upstream) declare(dir string) {
	u.Helper()
	for _, name := range []string{"garden", "components/garden/kube-apiserver", ".sops"} {
		require.NoError(u, os.MkdirAll(u.path(name), 0o755))
	}
	u.write("components/garden/kube-apiserver/kustomization.yaml", noWait)
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

// put makes objects, as managers of upstream do. What needs another one of them is tried again.
func (u *upstream) put(all []recorded) {
	u.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var left []recorded
		var problems []string
		for _, r := range all {
			resource, err := u.resource(r.cluster, r.Unstructured)
			if err == nil {
				manager := "gardener-operator"
				if r.carrier != "" {
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

// landscape reads the files.
func (u *upstream) landscape() *landscapes.Landscape {
	u.Helper()
	l, violations, err := landscapes.Load(context.Background(), u.dir, landscapes.Options{})
	require.NoError(u, err)
	require.Empty(u, violations)
	return l
}

// input is the Garden of the files.
func (u *upstream) input() render.Input {
	u.Helper()
	inputs, err := render.Owners(u.landscape(), render.At(time.Now()))
	require.NoError(u, err)
	require.Len(u, inputs, 1)
	return inputs[0]
}

// makeSecrets lets a secrets manager with the identity of gardener-operator make what the recording has, with values: names and labels of what is not signed
// by another Secret are those that were recorded.
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
		if u.was.secrets[name] == nil {
			require.NoError(u, client.CoreV1().Secrets("garden").Delete(u.context(), s.Name, metav1.DeleteOptions{}), "upstream has none of it")
		}
	}
	for _, r := range u.was.objects {
		if made := byContent[hashSuffix.ReplaceAllString(r.GetName(), "")]; r.GetKind() == "Secret" && made != "" {
			u.texts[r.GetName()] = made
		}
	}
	for name, want := range u.was.secrets {
		have, is := there[name]
		if !is {
			assert.Equal(u, "shoot-access-gardener-resource-manager-bootstrap", name, "nothing asks for it; this one is for ten minutes")
			continue
		}
		u.texts[want.GetName()] = have.Name
		assert.Equal(u, slices.Sorted(maps.Keys(want.GetLabels())), slices.Sorted(maps.Keys(have.Labels)), "labels of Secret %s", have.Name)
		data, _, _ := unstructured.NestedMap(want.Object, "data")
		assert.Equal(u, slices.Sorted(maps.Keys(data)), slices.Sorted(maps.Keys(have.Data)), "keys of Secret %s", have.Name)
		if want.GetLabels()["checksum-of-signing-ca"] == "" && want.GetLabels()["bundle-for"] == "" && name != "generic-token-kubeconfig" {
			assert.Equal(u, want.GetName(), have.Name)
			assert.Equal(u, want.GetLabels()["checksum-of-config"], have.Labels["checksum-of-config"], have.Name)
		}
	}
}

// referred is an annotation that names something by whose content the object changes; the key has the hash of the name.
var referred = regexp.MustCompile(`^reference\.resources\.gardener\.cloud/(secret|configmap)-[0-9a-f]{8}$`)

// refer writes the keys of such annotations anew, where the names are others than in the recording.
func refer(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Collect(maps.Keys(v)) {
			if kind := referred.FindStringSubmatch(key); kind != nil {
				name := v[key].(string)
				delete(v, key)
				key, _ = render.ReferenceAnnotation(map[string]string{"secret": "Secret", "configmap": "ConfigMap"}[kind[1]], name)
				v[key] = name
			}
			refer(v[key])
		}
	case []any:
		for _, inner := range v {
			refer(inner)
		}
	}
}

// fromUID takes over what is made of the UID of the Garden, which an API server chooses: when the etcds are defragmented and saved.
func (u *upstream) fromUID(o, rendered *unstructured.Unstructured) {
	u.Helper()
	if o.GetKind() != "Etcd" {
		return
	}
	for _, path := range [][]string{{"spec", "etcd", "defragmentationSchedule"}, {"spec", "backup", "fullSnapshotSchedule"}} {
		if schedule := text(rendered, path...); schedule != "" {
			require.NotEmpty(u, text(o, path...))
			require.NoError(u, unstructured.SetNestedField(o.Object, schedule, path...))
		}
	}
}

// renamed finds what is named after its content, and has the content that is rendered with what it refers to here: then upstream would have given it that name.
func (u *upstream) renamed(dir string) bool {
	u.Helper()
	found := false
	for _, r := range readRecording(u.T, dir, u.replacer()).objects {
		beside := u.rendered[r.cluster+" "+r.key()]
		if beside == nil || !hashSuffix.MatchString(r.GetName()) || beside.GetName() == r.GetName() || u.texts[r.GetName()] != "" {
			continue
		}
		data := func(o *unstructured.Unstructured) map[string]any {
			values, _, _ := unstructured.NestedMap(o.Object, "data")
			return values
		}
		want, have := data(r.Unstructured), data(beside)
		same := len(want) == len(have)
		for key, value := range want {
			written, _ := value.(string)
			same = same && have[key] != nil && (strings.Contains(written, "REDACTED") || strings.TrimRight(written, "\n") == strings.TrimRight(fmt.Sprint(have[key]), "\n"))
		}
		if same {
			u.texts[r.GetName()], found = beside.GetName(), true
		}
	}
	return found
}

// replacer puts what is here in the place of what was there in the recording, longer texts first.
func (u *upstream) replacer() *strings.Replacer {
	var old []string
	for _, text := range slices.Backward(slices.SortedFunc(maps.Keys(u.texts), func(a, b string) int { return len(a) - len(b) })) {
		old = append(old, text, u.texts[text])
	}
	return strings.NewReplacer(old...)
}

// fill puts values into a recording where it left them out: those of what is rendered, so that nothing is said about them.
func fill(recorded, rendered any) any {
	switch r := recorded.(type) {
	case map[string]any:
		beside, _ := rendered.(map[string]any)
		for key, value := range r {
			r[key] = fill(value, beside[key])
		}
	case []any:
		beside, _ := rendered.([]any)
		for i, value := range r {
			if i < len(beside) {
				r[i] = fill(value, beside[i])
			} else {
				r[i] = fill(value, nil)
			}
		}
	case string:
		if strings.HasPrefix(r, "OMITTED") || strings.Contains(r, "REDACTED") {
			if text, is := rendered.(string); is {
				return text
			}
			return "left-out"
		}
	}
	return recorded
}

// complete is a recorded object as it was before its values were left out, and as gardener-resource-manager makes it of its ManagedResource.
func (u *upstream) complete(r recorded, carriers map[string]recorded) recorded {
	u.Helper()
	o := r.Unstructured
	if strings.HasSuffix(o.GetKind(), "WebhookConfiguration") {
		o.SetNamespace("") // a slip of upstream's, which its resource manager corrects
	}
	beside := u.rendered[r.cluster+" "+r.key()]
	unstructured.RemoveNestedField(o.Object, "status")
	unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(o.Object, "metadata", "ownerReferences")
	refer(o.Object)
	if beside == nil {
		o.Object = fill(o.Object, nil).(map[string]any)
	} else {
		o.Object = fill(o.Object, beside.Object).(map[string]any)
		u.fromUID(o, beside)
		if beside.GetName() == o.GetName() && hashSuffix.MatchString(o.GetName()) && o.GetKind() == "ConfigMap" {
			o.Object["data"] = beside.DeepCopy().Object["data"] // the hash in the name proves that it is the same; the recording lost line breaks
		}
	}
	switch {
	case o.GetKind() == "Secret":
		u.values(o, beside)
	case strings.HasSuffix(o.GetKind(), "WebhookConfiguration") && beside == nil:
		unanswered(o)
	}
	carrier, is := carriers[r.carrier]
	if !is {
		return r
	}
	inject, _, _ := unstructured.NestedStringMap(carrier.Object, "spec", "injectLabels")
	inject = merged(inject, map[string]string{"resources.gardener.cloud/managed-by": "gardener"})
	o.SetLabels(merged(o.GetLabels(), inject))
	o.SetAnnotations(merged(o.GetAnnotations(), map[string]string{
		"resources.gardener.cloud/origin": r.carrier, "resources.gardener.cloud/description": "DO NOT EDIT - managed by gardener-resource-manager",
	}))
	if slices.Contains(workloads, o.GetKind()) {
		labels, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
		require.NoError(u, unstructured.SetNestedStringMap(o.Object, merged(labels, inject), "spec", "template", "metadata", "labels"))
		claims, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
		for _, claim := range claims {
			c := &unstructured.Unstructured{Object: claim.(map[string]any)}
			c.SetLabels(merged(c.GetLabels(), inject))
		}
		if len(claims) > 0 {
			require.NoError(u, unstructured.SetNestedSlice(o.Object, claims, "spec", "volumeClaimTemplates"))
		}
	}
	return r
}

func merged(m, more map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, m)
	maps.Copy(out, more)
	return out
}

// unanswered lets requests pass that a webhook has to be asked about: where pods are played nobody answers.
func unanswered(configuration *unstructured.Unstructured) {
	hooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, raw := range hooks {
		hook := raw.(map[string]any)
		hook["failurePolicy"] = "Ignore"
		unstructured.RemoveNestedField(hook, "clientConfig", "caBundle")
	}
	configuration.Object["webhooks"] = hooks
}

// values gives a Secret its data: of a copy those of what it is a copy of.
func (u *upstream) values(o, rendered *unstructured.Unstructured) {
	u.Helper()
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	var from map[string]render.CopiedValue
	if rendered != nil {
		var err error
		from, err = render.CopiedValues(rendered)
		require.NoError(u, err)
	}
	for key := range data {
		data[key] = base64.StdEncoding.EncodeToString([]byte("value of " + o.GetName()))
		if value, is, _ := unstructured.NestedString(contentOf(rendered), "data", key); is {
			data[key] = value
		}
		if source, is := from[key]; is {
			secret, err := u.api[landscape.Runtime].Resource(secretsResource).Namespace("garden").Get(u.context(), source.Secret, metav1.GetOptions{})
			require.NoError(u, err)
			data[key], _, _ = unstructured.NestedString(secret.Object, "data", source.Key)
		}
	}
	if len(data) > 0 {
		o.Object["data"] = data
	}
}

// carry makes the data Secret and the status of a ManagedResource, as both resource managers leave them.
func (u *upstream) carry(mr recorded, objects []recorded) {
	u.Helper()
	var manifests bytes.Buffer
	var resources []any
	for _, o := range objects {
		raw, err := yaml.Marshal(o.Object)
		require.NoError(u, err)
		fmt.Fprintf(&manifests, "---\n%s", raw)
		resources = append(resources, map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "namespace": o.GetNamespace(), "name": o.GetName(), "labels": o.Object["metadata"].(map[string]any)["labels"]})
	}
	var packed bytes.Buffer
	w := brotli.NewWriter(&packed)
	_, err := w.Write(manifests.Bytes())
	require.NoError(u, err)
	require.NoError(u, w.Close())
	refs, _, _ := unstructured.NestedSlice(mr.Object, "spec", "secretRefs")
	require.Len(u, refs, 1)
	name := refs[0].(map[string]any)["name"].(string)
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
		"metadata": map[string]any{"name": name, "namespace": mr.GetNamespace(), "labels": map[string]any{"resources.gardener.cloud/garbage-collectable-reference": "true"}},
		"data":     map[string]any{"data.yaml.br": base64.StdEncoding.EncodeToString(packed.Bytes())}}}
	finalizer := "resources.gardener.cloud/gardener-resource-manager"
	if class := text(mr.Unstructured, "spec", "class"); class != "" {
		finalizer += "-" + class
	}
	mr.SetFinalizers([]string{finalizer})
	u.put([]recorded{{secret, landscape.Runtime, ""}, mr})
	r, err := u.resource(landscape.Runtime, mr.Unstructured)
	require.NoError(u, err)
	live, err := r.Get(u.context(), mr.GetName(), metav1.GetOptions{})
	require.NoError(u, err)
	sum := sha256.Sum256(packed.Bytes())
	condition := func(kind, status, reason string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": reason, "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}
	}
	live.Object["status"] = map[string]any{
		"observedGeneration": live.GetGeneration(), "secretsDataChecksum": hex.EncodeToString(sum[:]), "resources": resources,
		"conditions": []any{condition("ResourcesApplied", "True", "ApplySucceeded"), condition("ResourcesHealthy", "True", "ResourcesHealthy"), condition("ResourcesProgressing", "False", "ResourcesRolledOut")},
	}
	_, err = r.UpdateStatus(u.context(), live, metav1.UpdateOptions{FieldManager: "gardener-resource-manager"})
	require.NoError(u, err)
}

// deploy puts everything that was recorded into the clusters, with what a real landscape has besides: pods that are played, a gardener-apiserver that answers.
func (u *upstream) deploy(dir string) {
	u.Helper()
	images, err := render.ReadImageVector(components.FS)
	require.NoError(u, err)
	for _, image := range images {
		if image.Name == apiServerImage {
			u.texts["v0.0.0-master+$Format:%H$"] = image.Tag // the recording was made without a release
		}
	}
	u.was = readRecording(u.T, dir, strings.NewReplacer())

	u.Log("definitions, namespaces, the Garden")
	in := u.input()
	in.Facts.Clusters = map[string]render.ClusterFact{"runtime": {KubernetesVersion: "1.34.1"}}
	first, err := render.Render(in, render.Options{Catalogue: components.FS})
	require.NoError(u, err)
	var definitions []recorded
	for _, b := range first.Bundles {
		for _, o := range b.Objects {
			if o.GetKind() == "CustomResourceDefinition" && b.Component == "garden/crds" {
				definitions = append(definitions, recorded{o.Unstructured.DeepCopy(), landscape.Runtime, ""})
			}
		}
	}
	definitions = append(definitions, u.definitions(landscape.Runtime, "operator.gardener.cloud_")...)
	definitions = append(definitions, u.definitions(gardenAPI, "core.gardener.cloud_", "seedmanagement.", "operations.", "security.")...)
	u.put(definitions)
	carriers := map[string]recorded{}
	for _, r := range u.was.objects {
		if r.GetKind() == "ManagedResource" {
			carriers[r.GetNamespace()+"/"+r.GetName()] = r
		}
	}
	var namespaces []recorded
	for _, r := range u.was.objects {
		if r.GetKind() == "Namespace" {
			namespaces = append(namespaces, u.complete(r, carriers))
		}
	}
	namespaces = append(namespaces, recorded{u.object("{apiVersion: v1, kind: Namespace, metadata: {name: garden}}"), gardenAPI, ""})
	u.put(namespaces)
	for _, r := range u.was.objects {
		if r.GetKind() == "Garden" {
			u.put([]recorded{u.complete(r, nil)})
		}
	}
	u.put([]recorded{
		{u.object(`{apiVersion: v1, kind: Secret, metadata: {name: garden-dns-local, namespace: garden}, type: Opaque}`), landscape.Runtime, ""},
		{u.object(`{apiVersion: v1, kind: Secret, metadata: {name: virtual-garden-etcd-main-backup-local, namespace: garden}, type: Opaque, stringData: {hostPath: /etc/gardener/local-backupbuckets}}`), landscape.Runtime, ""},
	})
	garden := u.get(landscape.Runtime, gardens, "", "local")
	u.texts["11111111-2222-3333-4444-555555555555"] = string(garden.GetUID())

	u.Log("secrets, Services and their addresses")
	u.makeSecrets(first)
	u.serveGardenAPI()
	var services []recorded
	for _, r := range u.was.objects {
		if r.GetKind() == "Service" {
			settlePorts(r.Unstructured)
			services = append(services, u.complete(r, carriers))
		}
	}
	u.put(services)
	u.texts["1.2.3.4"] = u.gateway()

	u.Log("what is rendered with all that")
	c := u.process(0)
	_, err = c.Plan(u.context())
	u.rendered = map[string]*unstructured.Unstructured{}
	for _, place := range c.Rendered() {
		for _, o := range place.Bundle.Objects {
			u.rendered[place.Cluster+" "+keyOf(o.Unstructured)] = o.Unstructured
		}
	}
	c.Close()
	require.NotEmpty(u, u.rendered, "%v", err)

	u.Log("everything else")
	for u.renamed(dir) {
	}
	u.was = readRecording(u.T, dir, u.replacer())
	content := map[string][]recorded{}
	var rest []recorded
	for _, r := range u.was.objects {
		switch r.GetKind() {
		case "ManagedResource", "CustomResourceDefinition", "Namespace", "Garden":
			continue
		}
		if slices.Contains(unregistered, r.GetKind()+" "+r.GetName()) {
			continue
		}
		settlePorts(r.Unstructured)
		r = u.complete(r, carriers)
		u.leadToGardenAPI(r)
		if r.GetKind() != "Service" {
			rest = append(rest, r)
		}
		if r.carrier != "" {
			content[r.carrier] = append(content[r.carrier], r)
		}
	}
	u.put(rest)
	for _, name := range slices.Sorted(maps.Keys(carriers)) {
		u.carry(carriers[name], content[name])
	}
	u.upstreamRuns()
	_, err = u.api[landscape.Runtime].Resource(gardens).Patch(u.context(), "local", types.MergePatchType, []byte(`{"status":{"observedGeneration":1,
"lastOperation":{"type":"Reconcile","state":"Succeeded","progress":100,"description":"done","lastUpdateTime":"2026-01-01T00:00:00Z"}}}`), metav1.PatchOptions{FieldManager: "gardener-operator"}, "status")
	require.NoError(u, err)
}

// settlePorts takes off what the recording says of a port that has no target: 0, which no API server accepts.
func settlePorts(o *unstructured.Unstructured) {
	ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
	for _, port := range ports {
		if p, is := port.(map[string]any); is && fmt.Sprint(p["targetPort"]) == "0" {
			delete(p, "targetPort")
		}
	}
	if o.GetKind() == "Service" && len(ports) > 0 {
		o.Object["spec"].(map[string]any)["ports"] = ports
	}
}

// definitions are those of our API whose file names begin so.
func (u *upstream) definitions(cluster string, prefixes ...string) []recorded {
	u.Helper()
	var out []recorded
	files, err := filepath.Glob(filepath.Join(u.world.Root, "api", "crds", "*.yaml"))
	require.NoError(u, err)
	for _, file := range files {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(filepath.Base(file), prefix) }) {
			raw, err := os.ReadFile(file)
			require.NoError(u, err)
			out = append(out, recorded{u.object(string(raw)), cluster, ""})
		}
	}
	require.NotEmpty(u, out)
	return out
}

func (u *upstream) object(text string) *unstructured.Unstructured {
	u.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(u, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

// gateway waits for the address of the gateway.
func (u *upstream) gateway() string {
	u.Helper()
	var address string
	require.Eventually(u, func() bool {
		service := u.get(landscape.Runtime, servicesResource, "virtual-garden-istio-ingress", "istio-ingressgateway")
		found, _, _ := unstructured.NestedSlice(contentOf(service), "status", "loadBalancer", "ingress")
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

// Pods that are played have no addresses that anybody reaches: where the Gardener API is served is patched into what is rendered, and into what was recorded.
const leadElsewhere = `
patches:
- target: {kind: Endpoints, name: gardener-apiserver}
  patch: |
    - {op: replace, path: /subsets/0/addresses/0/ip, value: ADDRESS}
    - {op: replace, path: /subsets/0/ports/0/port, value: PORT}
- target: {kind: EndpointSlice, name: gardener-apiserver}
  patch: |
    - {op: replace, path: /endpoints/0/addresses/0, value: ADDRESS}
    - {op: replace, path: /ports/0/port, value: PORT}
`

// serveGardenAPI plays gardener-apiserver: with its certificate, in front of a cluster that has the Gardener API by definitions.
func (u *upstream) serveGardenAPI() {
	u.Helper()
	certificate := u.get(landscape.Runtime, secretsResource, "garden", u.texts["gardener-apiserver-9ec653e5"])
	require.NotNil(u, certificate)
	pair := map[string][]byte{}
	for _, key := range []string{"tls.crt", "tls.key"} {
		var err error
		pair[key], err = base64.StdEncoding.DecodeString(text(certificate, "data", key))
		require.NoError(u, err)
	}
	loaded, err := tls.X509KeyPair(pair["tls.crt"], pair["tls.key"])
	require.NoError(u, err)
	config := u.world.configs[gardenAPI]
	transport, err := rest.TransportFor(config)
	require.NoError(u, err)
	target, err := url.Parse(config.Host)
	require.NoError(u, err)
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		for name := range r.Out.Header {
			if strings.HasPrefix(name, "X-Remote-") {
				r.Out.Header.Del(name)
			}
		}
	}}
	listener, err := net.Listen("tcp", net.JoinHostPort(u.host.String(), "0"))
	require.NoError(u, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/apis") {
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	require.NoError(u, server.Listener.Close())
	server.Listener, server.TLS = listener, &tls.Config{Certificates: []tls.Certificate{loaded}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	u.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(u, err)
	u.port, err = strconv.ParseInt(port, 10, 64)
	require.NoError(u, err)
	require.NoError(u, os.MkdirAll(u.path("components/garden/gardener-apiserver"), 0o755))
	u.write("components/garden/gardener-apiserver/kustomization.yaml", strings.NewReplacer("ADDRESS", u.host.String(), "PORT", port).Replace(leadElsewhere))
}

// leadToGardenAPI does to a recorded object what the patch does to the rendered one.
func (u *upstream) leadToGardenAPI(r recorded) {
	u.Helper()
	switch r.key() {
	case "Endpoints/kube-system/gardener-apiserver":
		r.Object["subsets"] = []any{map[string]any{"addresses": []any{map[string]any{"ip": u.host.String()}}, "ports": []any{map[string]any{"port": u.port, "protocol": "TCP"}}}}
	case "EndpointSlice/kube-system/gardener-apiserver":
		r.Object["endpoints"].([]any)[0].(map[string]any)["addresses"] = []any{u.host.String()}
		r.Object["ports"].([]any)[0].(map[string]any)["port"] = u.port
	}
}

// reachable is an address of this machine that an Endpoints object may have: none of the loopback.
func reachable(t *testing.T) net.IP {
	t.Helper()
	found, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range found {
		if network, is := a.(*net.IPNet); is && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP
		}
	}
	t.Skip("this machine has no address but the loopback's, which API servers do not take for that of gardener-apiserver")
	return nil
}

// deliberate are the differences from upstream that are wanted, as render/testdata/corpus.yaml has them.
type deliberate []struct {
	Object, Path string
}

func readDeliberate(t *testing.T, root string) deliberate {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "render", "testdata", "corpus.yaml"))
	require.NoError(t, err)
	var file struct {
		Cases []struct {
			Component   string
			Differences deliberate
		}
	}
	require.NoError(t, yaml.Unmarshal(raw, &file))
	var out deliberate
	for _, c := range file.Cases {
		if strings.HasPrefix(c.Component, "garden/") {
			out = append(out, c.Differences...)
		}
	}
	require.NotEmpty(t, out)
	return out
}

var (
	keyOfMap = regexp.MustCompile(`\.(annotations|labels|data)\[([^\]]*)\]`)
	ofList   = regexp.MustCompile(`\[[^\]]*\]`)
)

// allows tells whether an object, KIND/NAMESPACE/NAME, may differ at a path. The list names an item of a list by its position and a report by its name, so which item it
// is does not count.
func (d deliberate) allows(object, path string) bool {
	plain := func(path string) string {
		return ofList.ReplaceAllString(keyOfMap.ReplaceAllString(path, ".$1.$2"), "")
	}
	path = plain("." + path)
	for _, one := range d {
		prefix, all := strings.CutSuffix(one.Object, "*")
		if one.Object != object && (!all || !strings.HasPrefix(object, prefix)) {
			continue
		}
		// Where the name of an item differs, it is another item.
		if listed := plain(one.Path); strings.HasPrefix(path, listed) || listed == path+".name" {
			return true
		}
	}
	return false
}

// reference is a field by which an object names a ConfigMap or Secret with the hash of its content.
var reference = regexp.MustCompile(`annotations\[reference\.resources\.gardener\.cloud/(configmap|secret)-|\.(configMap)\.name$|\.(secret)\.secretName$|\.annotations\[(checksum)/`)

// follows tells whether a field only has another name of something that may have another content.
func (d deliberate) follows(namespace string, f plan.Field) bool {
	if !reference.MatchString(f.Path) {
		return false
	}
	for _, value := range []any{f.Old, f.New} {
		name, is := value.(string)
		if value == nil || !is {
			continue
		}
		base := namespace + "/" + hashSuffix.ReplaceAllString(name, "-HASH")
		for _, kind := range []string{"ConfigMap/", "Secret/"} {
			if d.differs(kind + base) {
				return true
			}
		}
	}
	return false
}

// differs tells whether anything of an object may differ.
func (d deliberate) differs(object string) bool {
	return slices.ContainsFunc(d, func(one struct{ Object, Path string }) bool { return one.Object == object })
}

// TestObjectsOfUpstream compares and stops what gardener-operator and gardener-resource-manager have really written and run for upstream's example Garden (shared/corpus).
func TestObjectsOfUpstream(t *testing.T) {
	dir := corpus.Dir(t)
	u := newUpstream(t, dir)
	u.deploy(dir)
	for _, step := range []struct {
		name string
		test func(*upstream)
	}{
		{"what a check says differs is listed as deliberate", testDiffersAsListed},
		{"what has to stop is gardener-operator", testStopped},
		{"gardener-operator can be started again", testStartedAgain},
	} {
		if !t.Run(step.name, func(t *testing.T) { on := *u; on.stage = u.on(t); step.test(&on) }) {
			t.Errorf("what follows builds on %q", step.name)
		}
	}
}

// keyNamed is the key of an object that a report names: KIND NAMESPACE/NAME.
func keyNamed(object string) (key, namespace string) {
	kind, name, _ := strings.Cut(object, " ")
	namespace, rest, namespaced := strings.Cut(name, "/")
	if !namespaced {
		namespace, rest = "", name
	}
	return kind + "/" + namespace + "/" + hashSuffix.ReplaceAllString(rest, "-HASH"), namespace
}

func testDiffersAsListed(u *upstream) {
	listed := readDeliberate(u.T, u.world.Root)
	report := u.check()
	assert.Empty(u, report.Problems)
	var unlisted []string
	for _, f := range report.Findings {
		if f.Level == Fine || f.Area == AreaControllers || f.Cluster == landscape.Virtual && slices.Equal(f.Objects, unregistered) {
			continue
		}
		if f.Area == AreaSecrets && f.Level == Changes {
			// Upstream has a token in the place of this one, and no certificate.
			f.Objects = slices.DeleteFunc(f.Objects, func(object string) bool {
				return strings.HasPrefix(object, "Secret garden/gardener-internal-") && listed.differs("Secret/garden/gardener-internal")
			})
			if len(f.Objects) == 0 {
				continue
			}
		}
		if f.Area != AreaObjects || f.Level == Blocks {
			unlisted = append(unlisted, fmt.Sprintf("%s %s %v: %s", f.Level, f.Area, f.Objects, f.Text))
			continue
		}
		if len(f.Fields) == 0 {
			for _, object := range f.Objects {
				// Upstream's words have a namespace for configurations of webhooks.
				if key, _ := keyNamed(object); !listed.differs(key) && !listed.differs(strings.Replace(key, "WebhookConfiguration//", "WebhookConfiguration/garden/", 1)) {
					unlisted = append(unlisted, fmt.Sprintf("%s: %s", object, f.Text))
				}
			}
		}
		for _, field := range telling(f.Fields) {
			object, path := f.Objects[0], field.Path
			if head, rest, several := strings.Cut(path, ": "); several {
				object, path = head, rest
			}
			field.Path = path
			if key, namespace := keyNamed(object); !listed.allows(key, path) && !listed.follows(namespace, field) {
				unlisted = append(unlisted, fmt.Sprintf("%s %s: %s: %v -> %v", f.Level, object, path, field.Old, field.New))
			}
		}
	}
	assert.Empty(u, unlisted, "%s", strings.Join(unlisted, "\n"))
	u.Logf("restarts: %v", objects(report.Of(Restarts)))
}

func testStopped(u *upstream) {
	u.stopAll()
	assert.Zero(u, u.replicas("gardener-operator"))
	for _, name := range []string{"gardener-resource-manager", "virtual-garden-gardener-resource-manager", "gardener-controller-manager", "gardener-scheduler"} {
		assert.Positive(u, u.replicas(name), "%s is the same program, and goes on", name)
	}
}

func testStartedAgain(u *upstream) {
	a, _ := u.adopter()
	defer a.Converger.Close()
	started, err := a.Undo(u.context())
	require.NoError(u, err)
	assert.Equal(u, []string{"runtime: Deployment garden/gardener-operator"}, started)
	assert.Equal(u, int64(2), u.replicas("gardener-operator"))
	assert.NotNil(u, u.get(landscape.Runtime, validatingWebhooks, "", "gardener-operator"))
	assert.Nil(u, u.get(landscape.Runtime, configMaps, "garden", recordName))
	for name := range u.was.secrets {
		list, err := u.api[landscape.Runtime].Resource(secretsResource).Namespace("garden").List(u.context(), metav1.ListOptions{LabelSelector: "managed-by=secrets-manager,name=" + name})
		require.NoError(u, err)
		assert.Len(u, list.Items, map[bool]int{true: 0, false: 1}[name == "shoot-access-gardener-resource-manager-bootstrap"], name)
	}
}
