// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestFindingPositions checks that the position is that of the wrong field, even if upstream
// reports a parent.
func TestFindingPositions(t *testing.T) {
	for name, test := range map[string]struct{ kind, rule, object, field, place string }{
		"a newest version that expires": {"CloudProfile", "cloudprofile/kubernetes-versions", "{kubernetes: {versions: [{version: 1.34.1}, {version: 1.35.0, expirationDate: '2030-01-01T00:00:00Z'}]}}",
			"spec.kubernetes.versions[].expirationDate", "spec.kubernetes.versions[1].expirationDate"},
		"a version of two parts": {"CloudProfile", "cloudprofile/kubernetes-versions", "{kubernetes: {versions: [{version: 1.34.1}, {version: '1.33'}]}}",
			"spec.kubernetes.versions[1]", "spec.kubernetes.versions[1].version"},
		"two supported versions": {"CloudProfile", "cloudprofile/kubernetes-versions", "{kubernetes: {versions: [{version: 1.35.1}, {version: 1.34.1, classification: supported}, {version: 1.34.1, classification: deprecated}, {version: 1.34.2, classification: supported}]}}",
			"spec.kubernetes.versions[1]", "spec.kubernetes.versions[1].classification"},
		"no version": {"CloudProfile", "cloudprofile/image-versions", "{machineImages: [{name: a, versions: [{version: 1.0.0, cri: [{name: containerd}]}, {version: foo, cri: [{name: containerd}]}]}]}",
			"spec.machineImages", "spec.machineImages[0].versions[1].version"},
		"a version for updates in place": {"CloudProfile", "cloudprofile/image-versions", "{machineImages: [{name: a, versions: [{version: 1.0.0, cri: [{name: containerd}], inPlaceUpdates: {supported: true, minVersionForUpdate: x}}]}]}",
			"spec.machineImages[0].versions[0].minVersionForInPlaceUpdate", "spec.machineImages[0].versions[0].inPlaceUpdates.minVersionForUpdate"},
		"an ingress controller for production": {"Shoot", "shoot/addons-purpose", "{purpose: production, addons: {kubernetesDashboard: {enabled: false}, nginxIngress: {enabled: true}}}",
			"spec.addons", "spec.addons.nginxIngress.enabled"},
		"a dashboard for production": {"Shoot", "shoot/addons-purpose", "{purpose: production, addons: {kubernetesDashboard: {enabled: true}, nginxIngress: {enabled: false}}}",
			"spec.addons", "spec.addons.kubernetesDashboard.enabled"},
	} {
		t.Run(name, func(t *testing.T) {
			var spec map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(test.object), &spec))
			in := Input{Object: mergeObject(validObject(t, test.kind), map[string]any{"spec": spec}), Positions: pathPositioner{}}
			violations, err := Validate(t.Context(), []Input{in}, Options{})
			require.NoError(t, err)
			var places []string
			for _, v := range violations {
				if v.Rule == test.rule && v.Field == test.field {
					places = append(places, v.File)
				}
			}
			assert.Contains(t, places, test.place, "%v", formatViolations(violations))
		})
	}
}
