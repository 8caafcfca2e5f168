// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/hack/corpus"
	"github.com/pergola-dev/pergola/render/availability"
)

// corpusCase maps a component to upstream's objects and lists the intended differences, each with
// its reason.
type corpusCase struct {
	Component string   `json:"component"`
	Corpus    []string `json:"corpus"`
	// Only selects the component's objects in these folders; empty means all.
	Only        []string     `json:"only"`
	Differences []difference `json:"differences"`
}

// difference allows objects (kind/name, a final * matches any rest) to differ, completely or below
// one path.
type difference struct {
	Object string `json:"object"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
	// Same means that the name is equal to upstream's, including a hash of content that the corpus
	// lacks in part.
	Same bool `json:"same"`
}

type corpusFile struct {
	Cases []corpusCase `json:"cases"`
	// Omitted are components that the example omits: see TestCorpusOmittedComponents.
	Omitted []omittedCase `json:"alone"`
	// Missing are folders of the Garden, or "<folder> <object>", that no component renders yet,
	// with the reason.
	Missing map[string]string `json:"missing"`
}

// TestCorpus measures fidelity: for upstream's example declarations our bundles have the objects of
// upstream's recorded reconcile. testdata/corpus.yaml lists the differences with their reasons.
func TestCorpus(t *testing.T) {
	root := corpus.Dir(t)
	raw, err := os.ReadFile("testdata/corpus.yaml")
	require.NoError(t, err)
	var file corpusFile
	require.NoError(t, yaml.UnmarshalStrict(raw, &file))
	results, places := map[string]Result{}, map[string]map[string]availability.Placement{}
	for _, c := range file.Cases {
		t.Run(c.Component, func(t *testing.T) {
			owner := strings.Split(c.Component, "/")[0]
			if _, ok := results[owner]; !ok {
				res, err := Render(corpusInput(t, root, owner), Options{Catalogue: components.FS})
				require.NoError(t, err)
				results[owner], places[owner] = res, recordedPlacements(t, root, owner, res)
			}
			got := ourObjects(t, results[owner], c.Component)
			want := map[string]map[string]any{}
			for _, folder := range c.Corpus {
				for key, obj := range c.selectObjects(corpusObjects(t, filepath.Join(root, "objects", folder, "reconcile-example.yaml"), places[owner])) {
					want[key] = obj
				}
			}
			used := make([]bool, len(c.Differences))
			var found []string
			for _, d := range compareObjects(want, got) {
				if !isAllowed(c.Differences, used, d) {
					found = append(found, d.String())
				}
			}
			for i, d := range c.Differences {
				if !used[i] {
					found = append(found, fmt.Sprintf("listed difference %s %s is none any more: take it off the list", d.Object, d.Path))
				}
				if d.Reason == "" {
					found = append(found, fmt.Sprintf("listed difference %s %s has no reason", d.Object, d.Path))
				}
				if d.Same && objectNameIn(want[d.Object]) != objectNameIn(got[d.Object]) {
					found = append(found, fmt.Sprintf("%s has another content: %s, and not %s", d.Object, objectNameIn(got[d.Object]), objectNameIn(want[d.Object])))
				}
			}
			if len(found) > 0 {
				t.Errorf("%d differences from upstream:\n%s", len(found), strings.Join(found, "\n"))
			}
		})
	}
}

// objectNameIn is the name of an object, including its hash.
func objectNameIn(object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	return name
}

// TestCorpusOperatingSystemConfig compares the names of units and files; TestCorpus skips them
// because their texts are our own.
func TestCorpusOperatingSystemConfig(t *testing.T) {
	root := corpus.Dir(t)
	res, err := Render(corpusInput(t, root, "shoot"), Options{Catalogue: components.FS, OnlyComponents: []string{"shoot/operatingsystemconfig"}})
	require.NoError(t, err)
	names := func(object map[string]any) map[string]bool {
		out := map[string]bool{}
		spec, _ := object["spec"].(map[string]any)
		for _, unit := range mapsIn(spec["units"]) {
			out["unit "+unit["name"].(string)] = true
		}
		for _, file := range mapsIn(spec["files"]) {
			name := file["path"].(string)
			if strings.HasPrefix(path.Base(name), "config-") {
				name = path.Dir(name) + "/config-VERSION.yaml" // named after the image of the agent
			}
			out["file "+name] = true
		}
		return out
	}
	// log shipping and root certificates
	later := regexp.MustCompile(`opentelemetry|updatecacerts|update-local-ca|ROOTcerts|unit containerd.service$`)
	want := corpusObjects(t, filepath.Join(root, "objects", "shoot/extensions-operatingsystemconfig", "reconcile-example.yaml"), nil)
	compared := 0
	for _, b := range res.Bundles {
		for _, o := range b.Objects {
			recorded := map[string]bool{}
			for _, w := range want {
				meta, _ := w["metadata"].(map[string]any)
				if meta["name"] == o.GetName() {
					recorded = names(w)
				}
			}
			for name := range recorded {
				if later.MatchString(name) {
					delete(recorded, name)
				}
			}
			compared += len(recorded)
			require.Equal(t, recorded, names(o.Object), o.GetName())
		}
	}
	require.Greater(t, compared, 20)
}

// corpusInput reads upstream's example declarations; other objects that an owner sees come from the
// other examples.
func corpusInput(t *testing.T, root, owner string) Input {
	t.Helper()
	read := func(name, kind string) map[string]any {
		raw, err := os.ReadFile(filepath.Join(root, "objects", "inputs", name+"-example.yaml"))
		require.NoError(t, err)
		objects, err := DecodeYAML(name, raw)
		require.NoError(t, err)
		for _, o := range objects {
			if o.GetKind() == kind {
				dropNull(o.Object)
				return o.Object
			}
		}
		t.Fatalf("no %s in %s", kind, name)
		return nil
	}
	// Addresses are from upstream's fake API server; names of CAs of shoots have no hash.
	facts := Facts{
		Clusters:  map[string]ClusterFact{"runtime": {KubernetesVersion: "1.34.1"}, "seed": {KubernetesVersion: "1.34.1"}},
		Addresses: map[string]string{"kube-apiserver": "10.241.0.5", "gardener-apiserver": "10.2.3.4", "virtual-garden-istio-ingress": "1.2.3.4"},
		Secrets:   map[string]SecretFact{"ca-kubelet": {Name: "ca-kubelet", Bundle: "ca-kubelet-bundle-" + symbolicMark}, "ssh-keypair": symbolicSecret("ssh-keypair")},
	}
	// The public key is part of the recording and must appear in the render.
	recorded, err := os.ReadFile(filepath.Join(root, "objects", "shoot/extensions-infrastructure", "reconcile-example.yaml"))
	require.NoError(t, err)
	key := facts.Secrets["ssh-keypair"]
	key.PublicKey = string(regexp.MustCompile(`sshPublicKey: (\S+)`).FindSubmatch(recorded)[1])
	facts.Secrets["ssh-keypair"] = key
	switch owner {
	case "garden":
		g := read("garden", "Garden")
		return Input{Owner: Owner{Kind: "garden", Name: "local", UID: "11111111-2222-3333-4444-555555555555", ControlPlaneNamespace: "garden"},
			Objects: map[string]map[string]any{"garden": g}, Facts: facts, TargetVersion: "1.33.0", GardenAPI: landscapev1alpha1.GardenAPIAggregated}
	case "seed":
		return Input{Owner: Owner{Kind: "seed", Name: "my-seed", ControlPlaneNamespace: "garden"},
			Objects: map[string]map[string]any{"seed": read("seed", "Seed")}, Facts: facts, TargetVersion: "1.34.1"}
	default:
		return Input{Owner: Owner{Kind: "shoot", Namespace: "garden-dev", Name: "crazy-botany", UID: "12345678-2222-3333-4444-555555555555", ControlPlaneNamespace: "shoot--dev--crazy-botany"},
			Objects: map[string]map[string]any{
				"shoot": read("shoot", "Shoot"), "seed": read("seed", "Seed"),
				"project":      {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": map[string]any{"name": "dev"}, "spec": map[string]any{"namespace": "garden-dev"}},
				"cloudProfile": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": map[string]any{"name": "cloudprofile1"}, "spec": map[string]any{"type": "local"}},
			}, Facts: facts, TargetVersion: "1.34.7"}
	}
}

// dropNull removes fields without a value, as an API server does.
func dropNull(content map[string]any) {
	for key, field := range content {
		if inner, is := field.(map[string]any); is {
			dropNull(inner)
		}
		if field == nil {
			delete(content, key)
		}
	}
}

// symbolicCAPrefix begins unknown certificates; 21 bytes of text are exactly 28 of base64.
var symbolicCAPrefix = base64.StdEncoding.EncodeToString([]byte(symbolicCAWords[:21]))

var (
	hashSuffix   = regexp.MustCompile(`-([0-9a-f]{8}|XXXXXXXX)(-[0-9a-f]{5})?$`)
	referenceKey = regexp.MustCompile(`^reference\.resources\.gardener\.cloud/(secret|configmap)-[0-9a-f]{8}$`)
)

// corpusKey is kind/namespace/name without generated hashes.
func corpusKey(obj *unstructured.Unstructured) string {
	return obj.GetKind() + "/" + obj.GetNamespace() + "/" + hashSuffix.ReplaceAllString(obj.GetName(), "-HASH")
}

func ourObjects(t *testing.T, res Result, component string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, b := range res.Bundles {
		if b.Component != component {
			continue
		}
		for _, obj := range bundleObjects(t, b) {
			content, _ := canonicalValue(obj.Object).(map[string]any)
			out[corpusKey(obj)] = content
		}
	}
	require.NotEmpty(t, out, "component %s rendered nothing", component)
	return out
}

// bundleObjects are the applied objects of a bundle and its ManagedResource.
func bundleObjects(t *testing.T, b Bundle) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, o := range b.Objects {
		out = append(out, fillCopiedValues(t, o.DeepCopy()))
	}
	if !b.Delivery.Direct {
		mr, _, err := ManagedResource(b)
		require.NoError(t, err)
		out = append(out, mr)
	}
	return out
}

// fillCopiedValues adds the keys of a copied Secret, as when it is applied.
func fillCopiedValues(t *testing.T, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	values, err := CopiedValues(obj)
	require.NoError(t, err)
	if values == nil {
		return obj
	}
	removeMark(obj, MarkCopiedValues)
	data := map[string]any{}
	for key := range values {
		data[key] = "REDACTED"
	}
	obj.Object["data"] = data
	return obj
}

func corpusObjects(t *testing.T, file string, places map[string]availability.Placement) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	objects := recordedObjects(t, file)
	applyPlacements(t, places, objects)
	for _, obj := range objects {
		if obj.GetKind() == "Secret" && (obj.GetLabels()["managed-by"] == "secrets-manager" || strings.HasPrefix(obj.GetName(), "managedresource-")) {
			continue // generated by the secrets manager, never rendered
		}
		c, _ := canonicalValue(obj.Object).(map[string]any)
		out[corpusKey(obj.Unstructured)] = c
	}
	return out
}

// canonicalValue removes insignificant differences: generated hashes, redacted values, empty maps
// and lists, and the type of numbers.
func canonicalValue(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, item := range x {
			if referenceKey.MatchString(k) {
				k = "reference " + hashSuffix.ReplaceAllString(fmt.Sprint(item), "-HASH")
			}
			if c := canonicalValue(item); c != nil {
				out[k] = c
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, item := range x {
			out = append(out, canonicalValue(item))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case string:
		if strings.HasPrefix(x, "REDACTED") || strings.Contains(x, symbolicCAPrefix) {
			return "REDACTED"
		}
		return hashSuffix.ReplaceAllString(x, "-HASH")
	case nil:
		return nil
	default:
		raw, _ := json.Marshal(x)
		return string(raw)
	}
}

type foundDifference struct{ object, path, want, got string }

func (f foundDifference) String() string {
	return fmt.Sprintf("%s %s: upstream %s, ours %s", f.object, f.path, shortText(f.want), shortText(f.got))
}

func shortText(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

func compareObjects(want, got map[string]map[string]any) []foundDifference {
	var out []foundDifference
	keys := map[string]bool{}
	for k := range want {
		keys[k] = true
	}
	for k := range got {
		keys[k] = true
	}
	for k := range keys {
		w, inWant := want[k]
		g, inGot := got[k]
		switch {
		case !inWant:
			out = append(out, foundDifference{k, "", "has no such object", "has it"})
		case !inGot:
			out = append(out, foundDifference{k, "", "has it", "has no such object"})
		case strings.HasPrefix(k, "CustomResourceDefinition/"):
			// The corpus has no schemas.
		default:
			out = append(out, compareValues(k, "", w, g)...)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].object+out[i].path < out[j].object+out[j].path })
	return out
}

func compareValues(object, path string, want, got any) []foundDifference {
	wm, ok1 := want.(map[string]any)
	gm, ok2 := got.(map[string]any)
	if ok1 && ok2 {
		var out []foundDifference
		keys := map[string]bool{}
		for k := range wm {
			keys[k] = true
		}
		for k := range gm {
			keys[k] = true
		}
		for k := range keys {
			if path == "" && k == "status" {
				continue
			}
			out = append(out, compareValues(object, path+"."+k, wm[k], gm[k])...)
		}
		return out
	}
	wl, ok1 := want.([]any)
	gl, ok2 := got.([]any)
	if ok1 && ok2 && len(wl) == len(gl) {
		var out []foundDifference
		for i := range wl {
			out = append(out, compareValues(object, fmt.Sprintf("%s[%d]", path, i), wl[i], gl[i])...)
		}
		return out
	}
	w, _ := json.Marshal(want)
	g, _ := json.Marshal(got)
	if want == "REDACTED" || bytes.Equal(w, g) {
		return nil
	}
	return []foundDifference{{object, path, string(w), string(g)}}
}

func isAllowed(allowed []difference, used []bool, d foundDifference) bool {
	for i, a := range allowed {
		if sameObject(a.Object, d.object) && strings.HasPrefix(d.path, a.Path) {
			used[i] = true
			return true
		}
	}
	return false
}
