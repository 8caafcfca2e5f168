// SPDX-License-Identifier: Apache-2.0

package adoption

// This file reads the corpus: objects that gardener-operator and gardener-resource-manager wrote.

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/render"
)

// recordedObject is an object that gardener-operator, or gardener-resource-manager for it, wrote.
type recordedObject struct {
	*unstructured.Unstructured
	// cluster is the cluster of the object. carrier is its ManagedResource, NAMESPACE/NAME, or ""
	// if gardener-operator wrote it directly.
	cluster, managedResource string
}

// key names an object without hashes, as render/testdata/corpus.yaml does.
func (r recordedObject) key() string { return keyOf(r.Unstructured) }

var hashSuffix = regexp.MustCompile(`-([0-9a-f]{8})(-[0-9a-f]{5})?$`)

func keyOf(o *unstructured.Unstructured) string {
	return o.GetKind() + "/" + o.GetNamespace() + "/" + hashSuffix.ReplaceAllString(o.GetName(), "-HASH")
}

// upstreamRecording has all recorded objects of the example Garden.
type upstreamRecording struct {
	objects []recordedObject
	// secrets are those of the secrets manager, by purpose.
	secrets map[string]*unstructured.Unstructured
}

var managedResourceComment = regexp.MustCompile(`(?m)^# in ManagedResource (\S+)`)

// readRecording reads the corpus and replaces texts that hold only for the recording.
func readRecording(t *testing.T, dir string, replace *strings.Replacer) upstreamRecording {
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
	out := upstreamRecording{secrets: map[string]*unstructured.Unstructured{}}
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
			r := recordedObject{Unstructured: o}
			if in := managedResourceComment.FindStringSubmatch(text); in != nil {
				r.managedResource = in[1]
			}
			r.cluster = clusters[cmp.Or(r.managedResource, "/")+" "+o.GetKind()+"/"+o.GetNamespace()+"/"+name]
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

// referenceAnnotation matches annotations that refer to an object by name; their key has a hash of
// the name.
var referenceAnnotation = regexp.MustCompile(`^reference\.resources\.gardener\.cloud/(secret|configmap)-[0-9a-f]{8}$`)

// updateReferenceKeys updates the keys of such annotations after names were replaced.
func updateReferenceKeys(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Collect(maps.Keys(v)) {
			if kind := referenceAnnotation.FindStringSubmatch(key); kind != nil {
				name := v[key].(string)
				delete(v, key)
				key, _ = render.ReferenceAnnotation(map[string]string{"secret": "Secret", "configmap": "ConfigMap"}[kind[1]], name)
				v[key] = name
			}
			updateReferenceKeys(v[key])
		}
	case []any:
		for _, inner := range v {
			updateReferenceKeys(inner)
		}
	}
}

// replacer replaces texts of the recording, longer ones first.
func (u *upstream) replacer() *strings.Replacer {
	var old []string
	for _, text := range slices.Backward(slices.SortedFunc(maps.Keys(u.replacements), func(a, b string) int { return len(a) - len(b) })) {
		old = append(old, text, u.replacements[text])
	}
	return strings.NewReplacer(old...)
}

// fillOmittedValues sets values that the recording omits to the rendered ones, so that they do not
// differ.
func fillOmittedValues(recorded, rendered any) any {
	switch r := recorded.(type) {
	case map[string]any:
		beside, _ := rendered.(map[string]any)
		for key, value := range r {
			r[key] = fillOmittedValues(value, beside[key])
		}
	case []any:
		beside, _ := rendered.([]any)
		for i, value := range r {
			if i < len(beside) {
				r[i] = fillOmittedValues(value, beside[i])
			} else {
				r[i] = fillOmittedValues(value, nil)
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

func mergeMaps(m, more map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, m)
	maps.Copy(out, more)
	return out
}

// removeZeroTargetPorts removes the recorded target port 0, which no API server accepts.
func removeZeroTargetPorts(o *unstructured.Unstructured) {
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
