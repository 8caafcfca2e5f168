// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// DataKey is the only key of a data Secret that Pergola writes; the suffix means brotli.
const DataKey = "data.yaml.br"

// ManifestYAML is the multi-document YAML of a bundle: sorted objects with sorted keys.
func ManifestYAML(objects []Object) ([]byte, error) {
	var out bytes.Buffer
	for _, obj := range objects {
		doc, err := MarshalYAML(obj.Object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		out.WriteString("---\n")
		out.Write(doc)
	}
	return out.Bytes(), nil
}

// ManagedResource wraps a bundle into a ManagedResource and a data Secret for upstream's resource
// manager. The Secret is immutable, named after its content and garbage-collectable. The
// ManagedResource refers to it by name and by annotation.
func ManagedResource(b Bundle) (mr, secret *unstructured.Unstructured, err error) {
	manifest, err := ManifestYAML(b.Objects)
	if err != nil {
		return nil, nil, fmt.Errorf("bundle %s: %w", b.ID(), err)
	}
	packed, err := compressManifest(manifest)
	if err != nil {
		return nil, nil, fmt.Errorf("bundle %s: compress: %w", b.ID(), err)
	}
	name := "managedresource-" + b.Name + "-" + hashValues(map[string][]byte{DataKey: packed})[:8]
	secret = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
		"metadata": map[string]any{
			"name": name, "namespace": b.Namespace,
			"labels": map[string]any{labelGarbageCollectable: "true"},
		},
		"data": map[string]any{DataKey: base64.StdEncoding.EncodeToString(packed)},
	}}
	key, value := ReferenceAnnotation("Secret", name)
	spec := map[string]any{
		"keepObjects": b.Delivery.KeepObjects,
		"secretRefs":  []any{map[string]any{"name": name}},
	}
	if b.Delivery.Class != "" {
		spec["class"] = b.Delivery.Class
	}
	if len(b.Delivery.InjectLabels) > 0 {
		spec["injectLabels"] = toAnyMap(b.Delivery.InjectLabels)
	}
	metadata := map[string]any{
		"name": b.Name, "namespace": b.Namespace,
		"annotations": map[string]any{key: value},
	}
	if len(b.Delivery.Labels) > 0 {
		metadata["labels"] = toAnyMap(b.Delivery.Labels)
	}
	mr = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
		"metadata": metadata, "spec": spec,
	}}
	return mr, secret, nil
}

// ReuseDataSecret makes mr and secret reuse the existing Secret, have, if both contain the same
// manifests. A change of compression alone does not replace the Secret. It reports whether they
// reuse it.
func ReuseDataSecret(mr, secret, have *unstructured.Unstructured) (bool, error) {
	if manifestOf(secret) == nil || !bytes.Equal(manifestOf(secret), manifestOf(have)) {
		return false, nil
	}
	data, _, err := unstructured.NestedString(have.Object, "data", DataKey)
	if err != nil {
		return false, fmt.Errorf("read Secret %s/%s: %w", have.GetNamespace(), have.GetName(), err)
	}
	annotations := mr.GetAnnotations()
	key, _ := ReferenceAnnotation("Secret", secret.GetName())
	delete(annotations, key)
	key, value := ReferenceAnnotation("Secret", have.GetName())
	annotations[key] = value
	mr.SetAnnotations(annotations)
	secret.SetName(have.GetName())
	if err := unstructured.SetNestedSlice(mr.Object, []any{map[string]any{"name": have.GetName()}}, "spec", "secretRefs"); err != nil {
		return false, err
	}
	return true, unstructured.SetNestedField(secret.Object, data, "data", DataKey)
}

// manifestOf is the manifest in a data Secret of Pergola; it is nil if unreadable or not alone.
func manifestOf(secret *unstructured.Unstructured) []byte {
	data, _, err := unstructured.NestedStringMap(secret.Object, "data")
	if err != nil || len(data) != 1 {
		return nil
	}
	packed, err := base64.StdEncoding.DecodeString(data[DataKey])
	if err != nil || len(packed) == 0 {
		return nil
	}
	plain, err := io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(packed)), MaxManifestSize+1))
	if err != nil || len(plain) > MaxManifestSize {
		return nil
	}
	return plain
}

// compressManifest compresses with fixed settings: same content, same bytes, same name.
func compressManifest(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w := brotli.NewWriterLevel(&out, brotli.DefaultCompression)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// MaxManifestSize limits the input of Unpack: far above any bundle, far below the possible
// expansion of a crafted Secret.
const MaxManifestSize = 64 << 20

// UnpackObjects reads the objects of a data Secret: every key counts, and the suffix .br means
// brotli. It reports documents that do not decode and returns the others.
func UnpackObjects(data map[string][]byte) ([]*unstructured.Unstructured, []error) {
	var out []*unstructured.Unstructured
	var problems []error
	for _, key := range sortedKeys(data) {
		raw := data[key]
		if len(key) > 3 && key[len(key)-3:] == ".br" {
			plain, err := io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(raw)), MaxManifestSize+1))
			if err != nil {
				problems = append(problems, fmt.Errorf("key %s: decompress: %w", key, err))
				continue
			}
			if len(plain) > MaxManifestSize {
				problems = append(problems, fmt.Errorf("key %s: more than %d MiB of manifests", key, MaxManifestSize>>20))
				continue
			}
			raw = plain
		}
		for i, doc := range splitYAML(raw) {
			content, err := decodeObject(doc.text)
			if err != nil {
				// The message of the parser quotes the text, which may be a secret.
				problems = append(problems, fmt.Errorf("key %s, document %d, line %d: not YAML of an object", key, i+1, faultLine(doc, err)))
				continue
			}
			if len(content) == 0 {
				continue
			}
			obj := &unstructured.Unstructured{Object: content}
			if obj.GetKind() == "" || obj.GetAPIVersion() == "" || obj.GetName() == "" {
				problems = append(problems, fmt.Errorf("key %s, document %d, line %d: %s", key, i+1, doc.contentLine(), missingFields(obj)))
				continue
			}
			out = append(out, obj)
		}
	}
	return out, problems
}

// faultLine is the line of the parser's error in a document, or the start of the document.
func faultLine(doc yamlDocument, err error) int {
	var at finding
	if errors.As(documentFinding("", doc, err), &at) {
		return at.Line
	}
	return doc.contentLine()
}

// missingFields describes the fields that a document lacks to be an object.
func missingFields(obj *unstructured.Unstructured) string {
	if obj.IsList() {
		return "a list is not an object: write each item as its own document"
	}
	var lacks []string
	for _, f := range []struct{ name, value string }{{"apiVersion", obj.GetAPIVersion()}, {"kind", obj.GetKind()}, {"metadata.name", obj.GetName()}} {
		if f.value == "" {
			lacks = append(lacks, f.name)
		}
	}
	return "an object needs " + strings.Join(lacks, ", ")
}

func toAnyMap(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

// digestOf covers everything that is sent to a cluster: objects and delivery.
func digestOf(b Bundle) (string, error) {
	objects := make([]map[string]any, 0, len(b.Objects))
	for _, o := range b.Objects {
		objects = append(objects, o.Object)
	}
	raw, err := json.Marshal(map[string]any{
		"cluster": b.Cluster, "namespace": b.Namespace, "name": b.Name,
		"delivery": b.Delivery, "condition": b.Condition, "objects": objects,
	})
	if err != nil {
		return "", fmt.Errorf("bundle %s: digest: %w", b.ID(), err)
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
