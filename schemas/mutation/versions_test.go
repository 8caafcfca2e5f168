// SPDX-License-Identifier: Apache-2.0

package mutation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/mutation"
)

func shootWithVersion(t testing.TB, version string) *unstructured.Unstructured {
	return newShoot(t, fmt.Sprintf("kubernetes: {version: %q}\nprovider: {type: example}", version))
}

func TestKubernetesVersion(t *testing.T) {
	const field = "spec.kubernetes.version"
	for name, test := range map[string]struct {
		written, before, want string
		reason, problem       string
	}{
		"none: the newest supported, neither preview nor expired": {want: "1.35.2", reason: "the newest supported version of CloudProfile cloud"},
		"of a minor version":                 {written: "1.34", want: "1.34.4", reason: "the newest supported version like 1.34 of CloudProfile cloud"},
		"of a major version":                 {written: "1", want: "1.35.2", reason: "the newest supported version like 1 of CloudProfile cloud"},
		"in full stays":                      {written: "1.35.1"},
		"preview in full stays":              {written: "1.36.0"},
		"unknown in full stays":              {written: "1.31.9"},
		"what is no version stays":           {written: "latest"},
		"what is no version stays, in parts": {written: "1.x"},
		"preview is not chosen":              {written: "1.36", problem: `CloudProfile cloud has no supported version like 1.36: preview and deprecated versions are not chosen automatically; to use one, write the full version, such as "1.36.0"`},
		"deprecated is not chosen":           {written: "1.33", problem: `CloudProfile cloud has no supported version like 1.33: preview and deprecated versions are not chosen automatically; to use one, write the full version, such as "1.33.8"`},
		"expired is the matter of a rule":    {written: "1.32"},
		"unknown is the matter of a rule":    {written: "1.31"},
		"the previous value stays":           {written: "1.35", before: "1.35.1", want: "1.35.1", reason: "the previous version"},
		"even if it has expired":             {written: "1.35", before: "1.35.3", want: "1.35.3", reason: "the previous version"},
		"and if nothing is said":             {before: "1.34.4", want: "1.34.4", reason: "the previous version"},
		"unless another one is meant":        {written: "1.35", before: "1.34.4", want: "1.35.2", reason: "the newest supported version like 1.35 of CloudProfile cloud"},
		"1.3 is not the beginning of 1.35":   {written: "1.3"},
	} {
		t.Run(name, func(t *testing.T) {
			var old *unstructured.Unstructured
			if test.before != "" {
				old = shootWithVersion(t, test.before)
			}
			out, result := mutateTwice(t, newTestMutator(t, profileYAML), shootWithVersion(t, test.written), old)
			got, _, _ := unstructured.NestedString(out.Object, "spec", "kubernetes", "version")
			if test.want == "" {
				assert.Equal(t, test.written, got)
				assert.Empty(t, changesOf(result, "shoot/kubernetes-version"))
			} else {
				assert.Equal(t, test.want, got)
				assert.Contains(t, result.Changes, mutation.Change{Field: field, Value: test.want, Mutation: "shoot/kubernetes-version", Reason: test.reason})
			}
			if test.problem == "" {
				assert.Empty(t, result.Problems)
				return
			}
			require.Len(t, result.Problems, 1)
			assert.Equal(t, field, result.Problems[0].Field)
			assert.Equal(t, test.problem, result.Problems[0].Message)
			assert.Equal(t, "Shoot garden-dev/botany", result.Problems[0].Kind+" "+result.Problems[0].Namespace+"/"+result.Problems[0].Name)
		})
	}
}

func TestMissingSourcesChangeNothing(t *testing.T) {
	written := newShoot(t, "seedName: eu\nexposureClassName: none\nkubernetes: {version: '1.35'}\nprovider: {type: example, workers: [{name: a, machine: {type: arm}}]}\nnetworking: {type: net}")
	_, alone := mutateTwice(t, newTestMutator(t), written, nil)
	for _, change := range alone.Changes {
		assert.NotContains(t, []string{"shoot/kubernetes-version", "shoot/machine-images", "shoot/architecture", "shoot/networks", "shoot/default-domain", "shoot/project-tolerations", "shoot/exposure-class"}, change.Mutation)
	}
	assert.Empty(t, alone.Problems)

	timeless := mutation.New(mutation.NewObjectLister([]*unstructured.Unstructured{decodeYAML(t, profileYAML)}), time.Time{})
	_, result := mutateTwice(t, timeless, written, nil)
	assert.Empty(t, changesOf(result, "shoot/kubernetes-version"), "without a time nobody knows what has expired")
	assert.Empty(t, changesOf(result, "shoot/machine-images"))
	assert.Equal(t, map[string]any{"spec.provider.workers[0].machine.architecture": "arm64"}, changesOf(result, "shoot/architecture"))
}

func TestPoolVersions(t *testing.T) {
	written := newShoot(t, "kubernetes: {version: 1.35.2}\nprovider: {type: example, workers: [{name: a, kubernetes: {version: '1.34'}, machine: {type: intel}}, {name: b, machine: {type: intel}}]}")
	_, result := mutateTwice(t, newTestMutator(t, profileYAML), written, nil)
	assert.Equal(t, map[string]any{"spec.provider.workers[0].kubernetes.version": "1.34.4"}, changesOf(result, "shoot/pool-versions"), "a pool without a version has that of the control plane")

	old := newShoot(t, "kubernetes: {version: 1.35.2}\nprovider: {type: example, workers: [{name: b, machine: {type: intel}}, {name: a, kubernetes: {version: 1.34.9}, machine: {type: intel}}]}")
	_, result = mutateTwice(t, newTestMutator(t, profileYAML), written, old)
	assert.Equal(t, map[string]any{"spec.provider.workers[0].kubernetes.version": "1.34.9"}, changesOf(result, "shoot/pool-versions"))
}

func shootWithMachine(t testing.TB, machine, more string) *unstructured.Unstructured {
	return newShoot(t, "kubernetes: {version: 1.35.2}\nprovider: {type: example, workers: [{name: a, machine: "+machine+more+"}]}")
}

func TestMachineImages(t *testing.T) {
	const image = "spec.provider.workers[0].machine.image"
	for name, test := range map[string]struct {
		machine, more, before string
		want                  map[string]any
		problem               string
	}{
		"the first image of the architecture":       {machine: "{type: intel}", want: map[string]any{image + ".name": "both", image + ".version": "2.2.0"}},
		"another architecture, by the machine type": {machine: "{type: arm}", want: map[string]any{image + ".name": "arm-only", image + ".version": "9.0.0"}},
		"another architecture, of an image":         {machine: "{type: arm, image: {name: both}}", want: map[string]any{image + ".version": "2.1.0"}},
		"the architecture of the pool wins":         {machine: "{type: intel, architecture: arm64}", want: map[string]any{image + ".name": "arm-only", image + ".version": "9.0.0"}},
		"shortened":                                 {machine: "{type: intel, image: {name: both, version: '2.1'}}", want: map[string]any{image + ".version": "2.1.0"}},
		"deprecated if there is no other":           {machine: "{type: intel, image: {name: both, version: '1'}}", want: map[string]any{image + ".version": "1.9.0"}},
		"preview is not chosen":                     {machine: "{type: intel, image: {name: both, version: '2.3'}}", problem: "has no usable version like 2.3 of the image both"},
		"nothing for the architecture":              {machine: "{type: intel, image: {name: arm-only}}", problem: "has no version of the image arm-only that fits the pool"},
		"in-place updates":                          {machine: "{type: intel, image: {name: both}}", more: ", updateStrategy: AutoInPlaceUpdate", want: map[string]any{image + ".version": "1.9.0"}},
		"in full stays":                             {machine: "{type: intel, image: {name: both, version: 2.3.0}}"},
		"unknown stays":                             {machine: "{type: intel, image: {name: other}}"},
		"the previous value":                        {machine: "{type: intel}", before: "{type: intel, image: {name: both, version: 2.1.0}}", want: map[string]any{image + ".name": "both", image + ".version": "2.1.0"}},
		"its version":                               {machine: "{type: intel, image: {name: both}}", before: "{type: intel, image: {name: both, version: 2.1.0}}", want: map[string]any{image + ".version": "2.1.0"}},
		"its version, shortened":                    {machine: "{type: intel, image: {name: both, version: '2'}}", before: "{type: intel, image: {name: both, version: 2.1.0}}", want: map[string]any{image + ".version": "2.1.0"}},
		"another image":                             {machine: "{type: intel, image: {name: both}}", before: "{type: intel, image: {name: arm-only, version: 9.0.0}}", want: map[string]any{image + ".version": "2.2.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			var old *unstructured.Unstructured
			if test.before != "" {
				old = shootWithMachine(t, test.before, "")
			}
			out, result := mutateTwice(t, newTestMutator(t, profileYAML), shootWithMachine(t, test.machine, test.more), old)
			got := changesOf(result, "shoot/machine-images")
			if test.want == nil {
				assert.Empty(t, got)
			} else {
				for field, value := range test.want {
					assert.Equal(t, value, got[field], field)
				}
				assert.Len(t, got, len(test.want))
			}
			if test.problem == "" {
				assert.Empty(t, result.Problems)
				workers, _, _ := unstructured.NestedSlice(out.Object, "spec", "provider", "workers")
				assert.Len(t, workers, 1)
				return
			}
			require.Len(t, result.Problems, 1)
			assert.Equal(t, image, result.Problems[0].Field)
			assert.Contains(t, result.Problems[0].Message, test.problem)
		})
	}
}

const capabilitiesYAML = `apiVersion: core.gardener.cloud/v1beta1
kind: CloudProfile
metadata: {name: cloud}
spec:
  type: example
  machineCapabilities:
  - {name: architecture, values: [amd64, arm64]}
  - {name: boot, values: [uefi, bios]}
  kubernetes: {versions: [{version: 1.35.2}]}
  machineImages:
  - name: old
    versions: [{version: 3.0.0, capabilityFlavors: [{architecture: [amd64], boot: [bios]}]}]
  - name: new
    versions:
    - {version: 4.0.0, capabilityFlavors: [{architecture: [amd64], boot: [uefi]}, {architecture: [arm64]}]}
    - {version: 4.1.0, capabilityFlavors: [{architecture: [amd64], boot: [bios]}]}
  machineTypes:
  - {name: modern, cpu: "2", gpu: "0", memory: 8Gi, capabilities: {architecture: [amd64], boot: [uefi]}}
  - {name: arm, cpu: "2", gpu: "0", memory: 8Gi, capabilities: {architecture: [arm64]}}
`

func TestCapabilities(t *testing.T) {
	for machine, want := range map[string][]any{
		"{type: modern, image: {name: new}}": {nil, "4.0.0"},
		"{type: arm, image: {name: new}}":    {nil, "4.0.0"},
		"{type: arm}":                        {"new", "4.0.0"},
	} {
		t.Run(machine, func(t *testing.T) {
			_, result := mutateTwice(t, newTestMutator(t, capabilitiesYAML), shootWithMachine(t, machine, ""), nil)
			got := changesOf(result, "shoot/machine-images")
			assert.Equal(t, want[0], got["spec.provider.workers[0].machine.image.name"])
			assert.Equal(t, want[1], got["spec.provider.workers[0].machine.image.version"])
			assert.Empty(t, result.Problems)
		})
	}
	_, result := mutateTwice(t, newTestMutator(t, capabilitiesYAML), shootWithMachine(t, "{type: arm}", ""), nil)
	assert.Equal(t, map[string]any{"spec.provider.workers[0].machine.architecture": "arm64"}, changesOf(result, "shoot/architecture"))
}

func TestNamespacedCloudProfile(t *testing.T) {
	own := "apiVersion: core.gardener.cloud/v1beta1\nkind: NamespacedCloudProfile\nmetadata: {name: own, namespace: garden-dev}\n" +
		"spec: {parent: {kind: CloudProfile, name: cloud}, kubernetes: {versions: [{version: 1.35.3, expirationDate: '2026-12-01T00:00:00Z'}]}}"
	written := shootWithVersion(t, "1.35")
	require.NoError(t, unstructured.SetNestedMap(written.Object, map[string]any{"kind": "NamespacedCloudProfile", "name": "own"}, "spec", "cloudProfile"))
	_, result := mutateTwice(t, newTestMutator(t, profileYAML, own), written, nil)
	assert.Equal(t, map[string]any{"spec.kubernetes.version": "1.35.3"}, changesOf(result, "shoot/kubernetes-version"), "the Project may use it for longer")
	assert.Equal(t, "the newest supported version like 1.35 of NamespacedCloudProfile garden-dev/own", result.Changes[0].Reason)

	_, result = mutateTwice(t, newTestMutator(t, own), written, nil)
	assert.Empty(t, changesOf(result, "shoot/kubernetes-version"), "without the parent nothing is known")
}
