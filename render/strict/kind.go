// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// Kind is the schema of one version of a kind.
type Kind struct {
	*structure.Kind
	// Resource is the plural of the kind in requests, from its definition; it is empty for a
	// Kubernetes kind.
	Resource string
	// goType is set for a Kubernetes kind.
	goType reflect.Type
	// validate is the API server's own check of a well-formed object.
	validate func(map[string]any) field.ErrorList
}

// kubernetes caches the Kubernetes kinds.
var kubernetes = struct {
	sync.Mutex
	types *goTypes
	kinds map[schema.GroupVersionKind]*Kind
}{kinds: map[schema.GroupVersionKind]*Kind{}}

// Kubernetes returns the schema of a Kubernetes kind, or nil if k8s.io/api does not have it.
func Kubernetes(gvk schema.GroupVersionKind) *Kind {
	kubernetes.Lock()
	defer kubernetes.Unlock()
	if kind, ok := kubernetes.kinds[gvk]; ok {
		return kind
	}
	if kubernetes.types == nil {
		kubernetes.types = newGoTypes()
	}
	var kind *Kind
	if gvk == definitionKind {
		kind = &Kind{goType: reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](), validate: validateDefinition}
	} else if object, err := scheme.Scheme.New(gvk); err == nil {
		kind = &Kind{goType: reflect.TypeOf(object).Elem(), validate: func(object map[string]any) field.ErrorList { return validateObject(gvk, object) }}
	}
	if kind != nil {
		kind.Kind = &structure.Kind{GVK: gvk, Root: kubernetes.types.node(kind.goType)}
	}
	kubernetes.kinds[gvk] = kind
	return kind
}

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// DefinedKinds returns the kinds of a definition, one per version. It skips versions with an
// unreadable schema.
func DefinedKinds(crd *apiextensionsv1.CustomResourceDefinition) map[schema.GroupVersionKind]*Kind {
	out := map[schema.GroupVersionKind]*Kind{}
	for _, version := range crd.Spec.Versions {
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		read, whole := structure.KindFromForeignCRD(gvk, crd.Spec.Scope == apiextensionsv1.NamespaceScoped, version.Schema.OpenAPIV3Schema)
		out[gvk] = &Kind{Kind: read, Resource: crd.Spec.Names.Plural, validate: validatorOf(version.Schema.OpenAPIV3Schema, whole)}
	}
	return out
}

// Check finds everything that an API server of a minor release would reject or drop, in the order
// of the fields.
func (k *Kind) Check(object map[string]any, minor int) []structure.Finding {
	found := k.CheckStructure(object, minor)
	if slices.ContainsFunc(found, func(f structure.Finding) bool { return !IsMissingNamespace(f) }) {
		return found
	}
	for _, err := range k.validate(object) {
		if !isSymbolic(err) {
			found = append(found, findingOf(err, k.Root.HidesUnknownNames))
		}
	}
	return sortFindings(append(found, k.checkAcceptedFaults(object)...))
}

// IsMissingNamespace reports whether a finding is about a missing namespace, which many objects get
// later.
func IsMissingNamespace(f structure.Finding) bool {
	return f.Type == typeRequired && f.Path.String() == "metadata.namespace"
}

// CheckStructure is Check without the API server's validation after decoding.
func (k *Kind) CheckStructure(object map[string]any, minor int) []structure.Finding {
	found := slices.Concat(k.Kind.Check(object), k.Root.DuplicateItems(object))
	if k.goType != nil {
		found = append(found, k.checkRelease(object, minor)...)
	}
	return sortFindings(found)
}

func sortFindings(found []structure.Finding) []structure.Finding {
	slices.SortStableFunc(found, func(a, b structure.Finding) int { return cmp.Compare(a.Path.String(), b.Path.String()) })
	return found
}

// CheckPart finds faults of a part of an object; required fields may be missing.
func (k *Kind) CheckPart(object map[string]any) []structure.Finding {
	found := slices.Concat(k.Kind.Check(object), k.Root.DuplicateItems(object))
	return slices.DeleteFunc(found, func(f structure.Finding) bool { return f.Type == string(typeRequired) })
}

const typeRequired = "Required"

// typeOf converts an error type to package structure.
func typeOf(t field.ErrorType) string {
	for of, name := range map[field.ErrorType]string{
		field.ErrorTypeRequired: typeRequired, field.ErrorTypeNotSupported: "NotSupported", field.ErrorTypeForbidden: "Forbidden",
		field.ErrorTypeDuplicate: "Duplicate", field.ErrorTypeTypeInvalid: "TypeInvalid", field.ErrorTypeTooLong: "TooLong", field.ErrorTypeTooMany: "TooMany",
	} {
		if of == t {
			return name
		}
	}
	return "Invalid"
}
