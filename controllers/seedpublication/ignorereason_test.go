// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestIgnoreReason(t *testing.T) {
	for name, test := range map[string]struct{ object, want string }{
		"a Seed":                        {"{kind: Seed, metadata: {name: a, annotations: {shoot.gardener.cloud/ignore: \"true\"}}}", ""},
		"a Seed that goes":              {"{kind: Seed, metadata: {name: a, deletionTimestamp: \"2026-01-01T00:00:00Z\"}}", "it is being deleted"},
		"a Shoot":                       {"{kind: Shoot, metadata: {namespace: garden-x, name: a}, spec: {seedName: s}, status: {seedName: s}}", ""},
		"a new Shoot":                   {"{kind: Shoot, metadata: {namespace: garden-x, name: a}, spec: {seedName: s}}", ""},
		"a Shoot that goes":             {"{kind: Shoot, metadata: {namespace: garden-x, name: a, deletionTimestamp: \"2026-01-01T00:00:00Z\"}}", "it is being deleted"},
		"a Shoot that moves":            {"{kind: Shoot, metadata: {namespace: garden-x, name: a}, spec: {seedName: s}, status: {seedName: r}}", "its control plane is on seed r"},
		"a Shoot without a seed":        {"{kind: Shoot, metadata: {namespace: garden-x, name: a}, status: {seedName: r}}", ""},
		"a Shoot that is ignored":       {"{kind: Shoot, metadata: {namespace: garden, name: a, annotations: {shoot.gardener.cloud/ignore: \"true\"}}, spec: {seedName: s}}", "annotation shoot.gardener.cloud/ignore says so"},
		"not ignored":                   {"{kind: Shoot, metadata: {namespace: garden, name: a, annotations: {shoot.gardener.cloud/ignore: \"false\"}}, spec: {seedName: s}}", ""},
		"the annotation of a project's": {"{kind: Shoot, metadata: {namespace: garden-x, name: a, annotations: {shoot.gardener.cloud/ignore: \"true\"}}, spec: {seedName: s}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(test.object), &o.Object))
			why := IgnoreReason(o)
			if test.want == "" {
				assert.Empty(t, why)
				return
			}
			assert.Contains(t, why, test.want)
		})
	}
}
