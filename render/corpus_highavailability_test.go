// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/render/availability"
)

// recordedPlacements are the namespaces of an owner in which upstream's resource manager sets
// replicas, zones and tolerations, as recorded, or else as rendered.
func recordedPlacements(t *testing.T, root, owner string, res Result) map[string]availability.Placement {
	t.Helper()
	out := map[string]availability.Placement{}
	for _, b := range res.Bundles {
		for _, o := range b.Objects {
			addPlacement(out, o.Unstructured)
		}
	}
	recordings, err := filepath.Glob(filepath.Join(root, "objects", owner, "*", "reconcile-example.yaml"))
	require.NoError(t, err)
	for _, recording := range recordings {
		for _, o := range recordedObjects(t, recording) {
			addPlacement(out, o.Unstructured)
		}
	}
	require.NotEmpty(t, out, "no namespace of the %s has a placement", owner)
	return out
}

// addPlacement records the placement of a namespace if it has the label for it.
func addPlacement(places map[string]availability.Placement, o *unstructured.Unstructured) {
	if o.GetKind() == "Namespace" && o.GetLabels()[gardencorev1beta1.HighAvailabilityConfigConsider] == "true" {
		places[o.GetName()] = availability.PlacementOf(o.GetAnnotations())
	}
}

// managedResourceMark marks objects that upstream deploys by a ManagedResource.
var managedResourceMark = regexp.MustCompile(`(?m)^# in ManagedResource `)

// recordedObject is an object of a recording.
type recordedObject struct {
	*unstructured.Unstructured
	delivery Delivery
}

// recordedObjects are the objects of a file.
func recordedObjects(t *testing.T, file string) []recordedObject {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []recordedObject
	for _, doc := range bytes.Split(raw, []byte("\n---\n")) {
		content, err := decodeObject(doc)
		require.NoError(t, err)
		if content["kind"] != nil {
			out = append(out, recordedObject{&unstructured.Unstructured{Object: content}, Delivery{Direct: !managedResourceMark.Match(doc)}})
		}
	}
	return out
}

// applyPlacements applies high availability to objects of upstream, because the recordings lack
// that webhook. Other tests compare the rules with upstream. This one compares their inputs:
// labels, replicas, autoscalers, namespaces.
func applyPlacements(t *testing.T, places map[string]availability.Placement, objects []recordedObject) {
	t.Helper()
	b := Bundle{Cluster: ClusterRuntime}
	for _, o := range objects {
		b.Objects = append(b.Objects, Object{Unstructured: o.Unstructured})
	}
	around := autoscaledWorkload([]Bundle{b})
	for _, o := range objects {
		kind := o.GroupVersionKind().GroupKind()
		place, ok := places[o.GetNamespace()]
		if _, skipped := o.GetLabels()[availability.SkipLabel]; !ok || skipped || !slices.Contains(highAvailabilityKinds, kind) {
			continue
		}
		require.NoError(t, applyPlacement(o.Unstructured, place, around[workloadKeyOf(o.Unstructured)], o.delivery.injectedPodLabels()))
	}
}
