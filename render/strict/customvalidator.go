// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"context"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// customValidator is the API server's check of objects of one version of a definition.
type customValidator struct {
	structural *structuralschema.Structural
	// schema is nil if package structure covers all of it.
	schema validation.SchemaValidator
	// rules are CEL rules; they are nil for none.
	rules *schemacel.Validator
}

// validatorOf builds the check at first use. For a schema that the server would reject, it checks
// only the metadata.
func validatorOf(props *apiextensionsv1.JSONSchemaProps, whole bool) func(map[string]any) field.ErrorList {
	made := sync.OnceValue(func() customValidator { return newCustomValidator(props, whole) })
	return func(object map[string]any) field.ErrorList {
		c, errs := made(), validateMetadata(object)
		if c.schema != nil {
			errs = append(errs, validation.ValidateCustomResource(nil, object, c.schema)...)
		}
		if c.rules == nil || len(errs) > 0 {
			return errs
		}
		filled, err := reencode(object)
		if err != nil {
			return append(errs, decodingError(err))
		}
		defaulting.Default(filled, c.structural)
		broken, _ := c.rules.Validate(context.Background(), nil, c.structural, filled, nil, celconfig.RuntimeCELCostBudget)
		return append(errs, broken...)
	}
}

func newCustomValidator(props *apiextensionsv1.JSONSchemaProps, whole bool) customValidator {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return customValidator{}
	}
	var c customValidator
	if !whole {
		if validator, _, err := validation.NewSchemaValidator(internal); err == nil {
			c.schema = validator
		}
	}
	if structural, err := structuralschema.NewStructural(internal); err == nil {
		c.structural, c.rules = structural, schemacel.NewValidator(structural, true, celconfig.PerCallLimit)
	}
	return c
}

// reencode is an object as the server reads it: rules distinguish integers from floats by their
// notation.
func reencode(object map[string]any) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	err = json.Unmarshal(data, &out)
	return out, err
}
