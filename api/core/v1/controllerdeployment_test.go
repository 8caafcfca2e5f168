// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// TestHelmDeployment checks that charts of both versions are read alike.
func TestHelmDeployment(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		want   *HelmControllerDeployment
		err    string
	}{
		"v1 chart":            {object: "helm: {rawChart: Zm9v}", want: &HelmControllerDeployment{RawChart: []byte("foo")}},
		"v1beta1 chart":       {object: "type: helm\nproviderConfig: {chart: Zm9v}", want: &HelmControllerDeployment{RawChart: []byte("foo")}},
		"v1beta1 OCI":         {object: "type: helm\nproviderConfig: {ociRepository: {ref: a}}", want: &HelmControllerDeployment{OCIRepository: &OCIRepository{Ref: ptr.To("a")}}},
		"v1beta1 empty":       {object: "type: helm", want: &HelmControllerDeployment{}},
		"v1beta1 other type":  {object: "type: custom\nproviderConfig: {chart: Zm9v}"},
		"v1beta1 not a chart": {object: "type: helm\nproviderConfig: {chart: {}}", err: "providerConfig of the ControllerDeployment a"},
		"nothing":             {object: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &ControllerDeployment{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(test.object), deployment))
			deployment.Name = "a"
			got, err := deployment.HelmDeployment()
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}
