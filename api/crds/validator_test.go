// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// validator checks an object like the API server at create and update. It drops nulls, sets
// defaults, finds unknown fields, and applies schema, list types and CEL rules.
type validator struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	cel        *schemacel.Validator
}

// newValidator returns a validator of the stored version.
func newValidator(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *validator {
	t.Helper()
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return newVersionValidator(t, version)
		}
	}
	require.Fail(t, "no version is stored", crd.Name)
	return nil
}

func newVersionValidator(t *testing.T, version apiextensionsv1.CustomResourceDefinitionVersion) *validator {
	t.Helper()
	schema := &apiextensions.CustomResourceValidation{}
	require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		&apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: version.Schema.OpenAPIV3Schema}, schema, nil))

	structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
	require.NoError(t, err)
	schemaValidator, _, err := validation.NewSchemaValidator(schema.OpenAPIV3Schema)
	require.NoError(t, err)
	return &validator{
		structural: structural,
		schema:     schemaValidator,
		cel:        schemacel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

// pruneAndDefault drops nulls and sets defaults in place, and returns the paths of unknown fields.
func (v *validator) pruneAndDefault(object map[string]any) []string {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	defaulting.Default(object, v.structural)
	return pruning.PruneWithOptions(runtime.DeepCopyJSON(object), v.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

func (v *validator) validate(object, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	if old == nil {
		errs = validation.ValidateCustomResource(nil, object, v.schema)
	} else {
		errs = validation.ValidateCustomResourceUpdate(nil, object, old, v.schema)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	if v.cel != nil {
		var oldObject any
		if old != nil {
			oldObject = old
		}
		celErrs, _ := v.cel.Validate(context.Background(), nil, v.structural, object, oldObject, celconfig.RuntimeCELCostBudget)
		errs = append(errs, celErrs...)
	}
	return errs
}

func toInternalDefinition(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	t.Helper()
	crd = crd.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, version.Name)
		}
	}
	internal := &apiextensions.CustomResourceDefinition{}
	require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil))
	return internal
}
