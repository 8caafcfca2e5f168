// SPDX-License-Identifier: Apache-2.0

// Package clusterobjects compares all objects of a cluster before a Garden with all objects after
// it: it finds objects left behind, deleted or changed. It is only for tests and demonstrations.
package clusterobjects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/apply"
)

// Objects is every object of a cluster, by kind, namespace and name.
type Objects map[string]*unstructured.Unstructured

// computedKinds are kinds that the API server computes on request.
var computedKinds = []string{"ComponentStatus"}

// volatileKinds are kinds that the cluster itself changes all the time.
var volatileKinds = []string{"Event", "Lease", "Node", "Endpoints", "EndpointSlice"}

// The Read function reads all objects of a cluster, of every kind that it serves and lists.
func Read(ctx context.Context, config *rest.Config) (Objects, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // warnings about old kinds do not matter here
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := kinds.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("reading the API kinds: %w", err)
	}
	out := Objects{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || slices.Contains(computedKinds, r.Kind) {
				continue
			}
			found, err := objects.Resource(gv.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue // its definition was just deleted
			}
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", r.Name, err)
			}
			for i := range found.Items {
				o := &found.Items[i]
				out[o.GetKind()+"."+o.GroupVersionKind().Group+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")] = o
			}
		}
	}
	return out, nil
}

// canRemain reports whether an object may remain after a Garden: Events, Leases, retained claims
// with their volumes, and objects of Pergola's chart and bootstrap.
func canRemain(o *unstructured.Unstructured) bool {
	ref := apply.RefOf(o)
	switch ref.Kind {
	case "Event", "Lease", "PersistentVolumeClaim", "PersistentVolume":
		return true
	case "Namespace":
		return ref.Name == "garden"
	case "PriorityClass": // the chart has it, and retains it, too
		return ref.Name == "gardener-garden-system-critical"
	case "CustomResourceDefinition", "APIService":
		// the API server creates the APIService of the definition
		return strings.HasSuffix(ref.Name, ".operator.gardener.cloud")
	case "ConfigMap":
		return ref.Namespace == "garden" && (ref.Name == "kube-root-ca.crt" || ref.Name == "pergola-inventory.landscape-bootstrap")
	case "ServiceAccount":
		return ref.Namespace == "garden" && ref.Name == "default"
	}
	return false
}

// MissingFrom returns the objects of w that other does not have, except objects that may stay.
func (w Objects) MissingFrom(other Objects) []string {
	return missingObjects(w, func(name string) bool { return other[name] != nil })
}

func missingObjects(w Objects, has func(name string) bool) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if !has(name) && !canRemain(w[name]) {
			out = append(out, name)
		}
	}
	return out
}

// ChangedSince returns the objects in both worlds whose UID, labels, annotations, finalizers,
// owners or content differ. The old and new content follow, with values of Secrets: it is for
// tests.
func (w Objects) ChangedSince(before Objects) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if before[name] == nil || slices.Contains(volatileKinds, w[name].GetKind()) {
			continue
		}
		if a, b := contentOf(before[name]), contentOf(w[name]); a != b {
			out = append(out, name+"\n  "+a+"\n  "+b)
		}
	}
	return out
}

// contentOf returns the content of an object as JSON, without status and metadata of the API
// server.
func contentOf(o *unstructured.Unstructured) string {
	content := map[string]any{"uid": o.GetUID(), "owners": o.GetOwnerReferences(), "labels": o.GetLabels(), "annotations": o.GetAnnotations(), "finalizers": o.GetFinalizers()}
	for field, value := range o.Object {
		if field != "metadata" && field != "status" {
			content[field] = value
		}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Digests is a World as stored in a file: a digest of each object, without values of Secrets.
// Objects of restless kinds have an empty digest.
type Digests map[string]string

// Digests returns the digests of all objects.
func (w Objects) Digests() Digests {
	out := Digests{}
	for name, o := range w {
		out[name] = ""
		if !slices.Contains(volatileKinds, o.GetKind()) {
			digest := sha256.Sum256([]byte(contentOf(o)))
			out[name] = hex.EncodeToString(digest[:])
		}
	}
	return out
}

// DifferencesFrom returns the differences from a record, one a line.
func (w Objects) DifferencesFrom(before Digests) []string {
	var out []string
	for _, name := range missingObjects(w, func(name string) bool { _, there := before[name]; return there }) {
		out = append(out, "left behind: "+name)
	}
	now := w.Digests()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		digest, there := now[name]
		switch {
		case !there && before[name] != "":
			out = append(out, "gone: "+name)
		case there && digest != before[name]:
			out = append(out, "changed: "+name)
		}
	}
	return out
}
