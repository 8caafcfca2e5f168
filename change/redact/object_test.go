// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/change"
)

// printFields prints fields in all formats of a plan. The printers import this package, so
// printers_test.go sets it.
var printFields func(testing.TB, []change.Field) string

// object reads YAML as the API machinery decodes it.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON(raw), text)
	return o
}
