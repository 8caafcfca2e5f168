package strict

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// Kind is the schema of one version of a kind.
type Kind struct {
	*structure.Kind
	// goType is that of a kind of Kubernetes.
	goType reflect.Type
	// rest checks what the schema of a definition says besides; nil where there is nothing.
	rest func(map[string]any) field.ErrorList
}

// kubernetes are the kinds of Kubernetes that were asked for.
var kubernetes = struct {
	sync.Mutex
	types *goTypes
	kinds map[schema.GroupVersionKind]*Kind
}{kinds: map[schema.GroupVersionKind]*Kind{}}

// Kubernetes gives the schema of a kind of Kubernetes itself, nil where k8s.io/api has no such kind.
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
		kind = &Kind{goType: reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]()}
	} else if object, err := scheme.Scheme.New(gvk); err == nil {
		kind = &Kind{goType: reflect.TypeOf(object).Elem()}
	}
	if kind != nil {
		kind.Kind = &structure.Kind{GVK: gvk, Root: kubernetes.types.node(kind.goType)}
	}
	kubernetes.kinds[gvk] = kind
	return kind
}

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// Defined gives the kinds of a definition, one for each of its versions. A version whose schema cannot be read has none.
func Defined(crd *apiextensionsv1.CustomResourceDefinition) map[schema.GroupVersionKind]*Kind {
	out := map[schema.GroupVersionKind]*Kind{}
	for _, version := range crd.Spec.Versions {
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		read, whole := structure.FromForeign(gvk, crd.Spec.Scope == apiextensionsv1.NamespaceScoped, version.Schema.OpenAPIV3Schema)
		kind := &Kind{Kind: read}
		if !whole {
			kind.rest = validatorOf(version.Schema.OpenAPIV3Schema)
		}
		out[gvk] = kind
	}
	return out
}

// validatorOf is the API server's own check of a schema; nil for one that it would not take.
func validatorOf(props *apiextensionsv1.JSONSchemaProps) func(map[string]any) field.ErrorList {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return nil
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil
	}
	return func(object map[string]any) field.ErrorList {
		return validation.ValidateCustomResource(nil, object, validator)
	}
}

// Check finds what an API server of a minor release would refuse or drop of an object, in the order of its fields.
func (k *Kind) Check(object map[string]any, minor int) []structure.Finding {
	found := slices.Concat(k.Kind.Check(object), k.Root.Doubles(object), labels(object))
	if k.goType != nil {
		found = append(found, k.younger(object, minor)...)
	}
	if len(found) == 0 && k.rest != nil {
		for _, err := range k.rest(object) {
			path, words := placeOf(err)
			found = append(found, structure.Finding{Path: fieldpath.Parse(path), Type: typeOf(err.Type), Message: words})
		}
	}
	slices.SortStableFunc(found, func(a, b structure.Finding) int { return cmp.Compare(a.Path.String(), b.Path.String()) })
	return found
}

// CheckPart finds what is wrong with a part of an object: it need not have all that the object must have.
func (k *Kind) CheckPart(object map[string]any) []structure.Finding {
	found := slices.Concat(k.Kind.Check(object), k.Root.Doubles(object))
	return slices.DeleteFunc(found, func(f structure.Finding) bool { return f.Type == string(typeRequired) })
}

const typeRequired = "Required"

// typeOf is the type of an error in the words of package structure.
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

// placeOf gives the field and the words of an error without its value, which may be secret. Of some constraints only the words name the field.
func placeOf(err *field.Error) (path, words string) {
	path, words = err.Field, err.Detail
	if m := quotedField.FindStringSubmatch(words); m != nil && (path == "" || path == "<nil>") {
		path, words = m[1], m[2]
	}
	if words == "" {
		words = strings.ToLower(err.Type.String())
	}
	return path, words
}

var quotedField = regexp.MustCompile(`^"([^"]+)" (.*)$`)

// labels checks the form of labels and annotations of an object and of the pods that it makes.
func labels(object map[string]any) []structure.Finding {
	var out []structure.Finding
	for _, place := range []fieldpath.Path{{"metadata"}, {"spec", "template", "metadata"}} {
		metadata, _ := valueAt(object, place).(map[string]any)
		for _, key := range []string{"labels", "annotations"} {
			texts := map[string]string{}
			values, _ := metadata[key].(map[string]any)
			for name, value := range values {
				if text, ok := value.(string); ok {
					texts[name] = text
				}
			}
			if len(texts) == 0 {
				continue
			}
			if key == "annotations" {
				for name := range texts {
					texts[name] = "" // only names have a form
				}
			}
			for _, err := range metav1validation.ValidateLabels(texts, nil) {
				name, _ := err.BadValue.(string)
				out = append(out, structure.Finding{Path: place.Append(key), Type: "Invalid", Message: fmt.Sprintf("%q: %s", name, err.Detail)})
			}
		}
	}
	return out
}

func valueAt(value any, path fieldpath.Path) any {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[fieldpath.Name(step)]
		case []any:
			i, ok := step.(int)
			if !ok || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}
