// SPDX-License-Identifier: Apache-2.0

package mutation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas/mutation"
)

// testTime is between the dates of the versions in profileYAML.
var testTime = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func decodeYAML(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, object.UnmarshalJSON(data), text)
	return object
}

// newTestMutator returns Surroundings with the objects of YAML documents.
func newTestMutator(t testing.TB, texts ...string) *mutation.Mutator {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, text := range texts {
		for document := range strings.SplitSeq(text, "\n---\n") {
			objects = append(objects, decodeYAML(t, document))
		}
	}
	return mutation.New(mutation.NewObjectLister(objects), testTime)
}

// mutateTwice returns the filled-in object, and checks that a second run changes nothing.
func mutateTwice(t testing.TB, s *mutation.Mutator, object, old *unstructured.Unstructured) (*unstructured.Unstructured, mutation.Result) {
	t.Helper()
	before := object.DeepCopy()
	out, result, err := s.MutateCopy(object, old)
	require.NoError(t, err)
	require.Equal(t, before, object, "what came in stays as it is")
	for _, change := range result.Changes {
		require.NotEmpty(t, change.Field)
		require.NotEmpty(t, change.Reason, change.Field)
		known := false
		for _, m := range mutation.Mutations() {
			known = known || m.ID == change.Mutation
		}
		require.True(t, known, "%s is no mutation", change.Mutation)
	}
	if old == nil {
		_, again, err := s.MutateCopy(out, out)
		require.NoError(t, err)
		require.Empty(t, again.Changes, "a second time nothing is filled in")
	}
	return out, result
}

// changesOf returns the changes of one mutation, keyed by field.
func changesOf(result mutation.Result, id string) map[string]any {
	out := map[string]any{}
	for _, change := range result.Changes {
		if change.Mutation == id {
			out[change.Field] = change.Value
		}
	}
	return out
}

const profileYAML = `apiVersion: core.gardener.cloud/v1beta1
kind: CloudProfile
metadata: {name: cloud}
spec:
  type: example
  kubernetes:
    versions:
    - {version: 1.36.0, classification: preview}
    - {version: 1.35.1}
    - {version: 1.35.3, expirationDate: "2026-05-01T00:00:00Z"}
    - {version: 1.35.2, expirationDate: "2027-01-01T00:00:00Z"}
    - {version: 1.34.9, lifecycle: [{classification: preview}, {classification: supported, startTime: "2026-12-01T00:00:00Z"}]}
    - {version: 1.34.4, lifecycle: [{classification: preview}, {classification: supported, startTime: "2026-02-01T00:00:00Z"}]}
    - {version: 1.33.8, classification: deprecated}
    - {version: 1.32.1, expirationDate: "2026-01-01T00:00:00Z"}
  machineImages:
  - name: arm-only
    versions:
    - {version: 9.0.0, architectures: [arm64]}
  - name: both
    versions:
    - {version: 2.1.0, architectures: [amd64, arm64]}
    - {version: 2.2.0, architectures: [amd64]}
    - {version: 2.3.0, architectures: [amd64, arm64], classification: preview}
    - {version: 1.9.0, architectures: [amd64], classification: deprecated, inPlaceUpdates: {supported: true}}
  machineTypes:
  - {name: intel, cpu: "2", gpu: "0", memory: 8Gi}
  - {name: arm, cpu: "2", gpu: "0", memory: 8Gi, architecture: arm64}
  regions: [{name: here}]
`

const seedYAML = `apiVersion: core.gardener.cloud/v1beta1
kind: Seed
metadata: {name: eu}
spec:
  provider: {type: example, region: here}
  backup: {provider: store}
  dns:
    provider: {type: route}
    defaults:
    - {type: route, domain: first.example.org, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns}}
    - {type: route, domain: second.example.org, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns}}
  networks:
    pods: 10.1.0.0/16
    services: 10.2.0.0/16
    shootDefaults: {pods: 100.1.0.0/16, services: 100.2.0.0/16}
---
apiVersion: core.gardener.cloud/v1beta1
kind: Project
metadata: {name: dev}
spec:
  namespace: garden-dev
  tolerations: {defaults: [{key: a}, {key: b, value: c}]}`

// newShoot returns a Shoot with additional fields of spec.
func newShoot(t testing.TB, spec string) *unstructured.Unstructured {
	t.Helper()
	return decodeYAML(t, "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: botany, namespace: garden-dev}\nspec:\n  cloudProfile: {name: cloud}\n  region: here\n"+indentYAML(spec))
}

func indentYAML(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}
