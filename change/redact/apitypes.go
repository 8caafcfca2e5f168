// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	corev1 "github.com/pergola-dev/pergola/api/core/v1"
	corev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	druidv1alpha1 "github.com/pergola-dev/pergola/api/druid/v1alpha1"
	extensionsv1alpha1 "github.com/pergola-dev/pergola/api/extensions/v1alpha1"
	operationsv1alpha1 "github.com/pergola-dev/pergola/api/operations/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/jsonvalue"
)

// The Go types of an API give the meaning of a value: which texts are quantities, times or
// durations, and whether empty equals absent. Defaults are also listed by type (defaults.go), and
// hold wherever a type is used.

// apiScheme is the scheme with the kinds of Kubernetes and Gardener.
var apiScheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensionsv1.AddToScheme, corev1.AddToScheme, corev1beta1.AddToScheme, druidv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme,
		operationsv1alpha1.AddToScheme, operatorv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme, securityv1alpha1.AddToScheme,
		seedmanagementv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
})

// apiService is the needed part of apiregistration.k8s.io/v1, whose Go package is in another module
// (k8s.io/kube-aggregator).
type apiService struct {
	Spec struct {
		Service *struct {
			Port *int32 `json:"port,omitempty"`
		} `json:"service,omitempty"`
		InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`
	} `json:"spec"`
}

// apiTypeOf returns the type of a kind, or nil if it is unknown.
func apiTypeOf(apiVersion, kind string) reflect.Type {
	group := change.Ref{APIVersion: apiVersion}.Group()
	if group == "apiregistration.k8s.io" && kind == "APIService" {
		return reflect.TypeFor[apiService]()
	}
	_, version, found := strings.Cut(apiVersion, "/")
	if !found {
		version = apiVersion
	}
	return apiScheme().AllKnownTypes()[schema.GroupVersionKind{Group: group, Version: version, Kind: kind}]
}

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	durationType = reflect.TypeFor[metav1.Duration]()
	timeType     = reflect.TypeFor[metav1.Time]()
	microType    = reflect.TypeFor[metav1.MicroTime]()
	unmarshaler  = reflect.TypeFor[json.Unmarshaler]()
)

// hasOwnDecoding reports whether a type decodes its own JSON: its fields do not describe that.
func hasOwnDecoding(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshaler) }

// jsonFieldTypesCache has the fields of struct types by their JSON names.
var jsonFieldTypesCache sync.Map // reflect.Type → map[string]reflect.Type

func jsonFieldTypes(t reflect.Type) map[string]reflect.Type {
	if known, ok := jsonFieldTypesCache.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous || strings.Contains(options, "inline") {
			if inner := indirect(f.Type); inner.Kind() == reflect.Struct {
				for k, v := range jsonFieldTypes(inner) {
					out[k] = v
				}
			}
			continue
		}
		out[name] = f.Type
	}
	jsonFieldTypesCache.Store(t, out)
	return out
}

// childType returns the declared type of the value below a key, or nil if it is unknown.
func childType(t reflect.Type, key string) reflect.Type {
	if t == nil {
		return nil
	}
	switch t = indirect(t); {
	case hasOwnDecoding(t):
		return nil
	case t.Kind() == reflect.Struct:
		return jsonFieldTypes(t)[key]
	case t.Kind() == reflect.Map:
		return t.Elem()
	}
	return nil
}

// itemType returns the type of the items of a list.
func itemType(t reflect.Type) reflect.Type {
	if t == nil {
		return nil
	}
	if t = indirect(t); t.Kind() == reflect.Slice && !hasOwnDecoding(t) {
		return t.Elem()
	}
	return nil
}

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// isZero reports whether a value equals an undeclared field of this type when stored. A pointer
// keeps the difference: emptyDir {}, namespaceSelector {}, optional: false.
func isZero(t reflect.Type, v any) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return false
	}
	switch x := v.(type) {
	case map[string]any:
		return len(x) == 0 && (t.Kind() == reflect.Map || t.Kind() == reflect.Struct && !hasOwnDecoding(t))
	case []any:
		return len(x) == 0 && t.Kind() == reflect.Slice
	case string:
		return x == "" && t.Kind() == reflect.String
	case bool:
		return !x && t.Kind() == reflect.Bool
	}
	if n, ok := jsonvalue.Number(v); ok {
		return n.Sign() == 0 && t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64
	}
	return false
}

// equalByType compares two texts by their meaning as values of a type; known is false if it cannot.
func equalByType(t reflect.Type, a, b any) (same, known bool) {
	x, isText := a.(string)
	y, isToo := b.(string)
	switch t {
	case quantityType:
		q, err := jsonvalue.Quantity(a)
		r, err2 := jsonvalue.Quantity(b)
		return err == nil && err2 == nil && q.Cmp(r) == 0, err == nil && err2 == nil
	case durationType:
		if isText && isToo {
			d, err := time.ParseDuration(x)
			e, err2 := time.ParseDuration(y)
			return d == e, err == nil && err2 == nil
		}
	case timeType, microType:
		if isText && isToo {
			d, err := time.Parse(time.RFC3339, x)
			e, err2 := time.Parse(time.RFC3339, y)
			return d.Equal(e), err == nil && err2 == nil
		}
	}
	return false, false
}

// isStructure reports whether a value is a struct, which always exists, even if empty.
func (l valueLocation) isStructure() bool {
	return l.goType != nil && l.goType.Kind() == reflect.Struct && !hasOwnDecoding(l.goType)
}
