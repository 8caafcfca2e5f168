// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestUnknownConstraintsAreRejected checks that unsupported constraints are not ignored.
func TestUnknownConstraintsAreRejected(t *testing.T) {
	three := 3.0
	for name, props := range map[string]apiextensionsv1.JSONSchemaProps{
		"format":            {Type: "string", Format: "hostname"},
		"format of a type":  {Type: "string", Format: "int32"},
		"multipleOf":        {Type: "integer", MultipleOf: &three},
		"uniqueItems":       {Type: "array", UniqueItems: true},
		"patternProperties": {Type: "object", PatternProperties: map[string]apiextensionsv1.JSONSchemaProps{"a": {}}},
		"allOf":             {Type: "string", AllOf: []apiextensionsv1.JSONSchemaProps{{Pattern: "a"}}},
		"anyOf":             {Type: "string", AnyOf: []apiextensionsv1.JSONSchemaProps{{Pattern: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			root := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": props}}
			_, err := nodeFromProps(&root, "Kind", rejectUnknown)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "Kind.a: ")
		})
	}
}

// TestEveryFormatIsImplemented checks that each text format has a message and a CUE constraint.
func TestEveryFormatIsImplemented(t *testing.T) {
	for _, format := range supportedFormats["string"][1:] {
		assert.NotEmpty(t, checkFormat(format, "%"), format)
		assert.NotEmpty(t, (&cueWriter{}).formatConstraint(format), format)
	}
}
