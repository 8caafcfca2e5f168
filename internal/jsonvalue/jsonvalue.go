// SPDX-License-Identifier: Apache-2.0

// Package jsonvalue reads and compares decoded JSON values.
package jsonvalue

import (
	"fmt"
	"math"
	"math/big"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Equal is reflect.DeepEqual for JSON values, several times as fast: most objects of a comparison
// are equal.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) || (x == nil) != (y == nil) {
			return false
		}
		for k, v := range x {
			if other, ok := y[k]; !ok || !Equal(v, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) || (x == nil) != (y == nil) {
			return false
		}
		for i := range x {
			if !Equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case string, bool, int64, float64, int, nil:
		return a == b
	}
	return reflect.DeepEqual(a, b)
}

// Number returns the exact value of a JSON number, however it was decoded.
func Number(v any) (*big.Float, bool) {
	out := new(big.Float).SetPrec(128)
	switch x := v.(type) {
	case int:
		return out.SetInt64(int64(x)), true
	case int32:
		return out.SetInt64(int64(x)), true
	case int64:
		return out.SetInt64(x), true
	case uint64:
		return out.SetUint64(x), true
	case float32:
		return out.SetFloat64(float64(x)), true
	case float64:
		if math.IsNaN(x) {
			return nil, false
		}
		return out.SetFloat64(x), true
	}
	return nil, false
}

// Quantity parses a Kubernetes quantity from a string or a number.
func Quantity(v any) (resource.Quantity, error) {
	switch v.(type) {
	case string, int, int64, float64:
		return resource.ParseQuantity(fmt.Sprint(v))
	}
	return resource.Quantity{}, fmt.Errorf("not a quantity")
}
