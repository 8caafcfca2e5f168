// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1alpha1 "k8s.io/apiserver/pkg/apis/apiserver/v1alpha1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	gardenletconfigv1alpha1 "github.com/pergola-dev/pergola/api/gardenletconfig/v1alpha1"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// A declaration can embed objects of other types: in fields with an open schema
// (runtime.RawExtension) and as text in ConfigMaps. An embedded object names its type by apiVersion
// and kind. If the type is known, its schema applies.

// configurationType is a type of embedded object that is not a separate kind.
type configurationType struct {
	gvk schema.GroupVersionKind
	// goType is the type that the process decodes the object into.
	goType reflect.Type
	// strict means that the process does not start with an unknown field; otherwise it drops the
	// field.
	strict bool
	// processName names the process in messages.
	processName string
	// releasedSeparately means that the process has its own releases, so an unknown value may
	// belong to another version. Only likely typos are reported, as warnings.
	releasedSeparately bool
	// templatePaths are the paths of templates, which the rules of their kinds check.
	templatePaths []string
}

func builtinConfigurationTypes() []configurationType {
	of := func(apiVersion, kind string, object any) configurationType {
		return configurationType{gvk: schema.FromAPIVersionAndKind(apiVersion, kind), goType: reflect.TypeOf(object), processName: "kube-apiserver"}
	}
	strictly := func(c configurationType) configurationType {
		c.strict = true
		return c
	}
	gardenlet := of(gardenletconfigv1alpha1.APIVersion, gardenletconfigv1alpha1.Kind, gardenletconfigv1alpha1.GardenletConfiguration{})
	gardenlet.processName, gardenlet.templatePaths = "a gardenlet", []string{"seedConfig.spec"}
	return []configurationType{
		gardenlet,
		of("audit.k8s.io/v1", "Policy", auditv1.Policy{}),
		strictly(of("apiserver.config.k8s.io/v1", "AuthenticationConfiguration", apiserverv1.AuthenticationConfiguration{})),
		strictly(of("apiserver.config.k8s.io/v1beta1", "AuthenticationConfiguration", apiserverv1beta1.AuthenticationConfiguration{})),
		strictly(of("apiserver.config.k8s.io/v1alpha1", "AuthenticationConfiguration", apiserverv1alpha1.AuthenticationConfiguration{})),
		strictly(of("apiserver.config.k8s.io/v1", "AuthorizationConfiguration", apiserverv1.AuthorizationConfiguration{})),
		strictly(of("apiserver.config.k8s.io/v1beta1", "AuthorizationConfiguration", apiserverv1beta1.AuthorizationConfiguration{})),
		strictly(of("apiserver.config.k8s.io/v1alpha1", "AuthorizationConfiguration", apiserverv1alpha1.AuthorizationConfiguration{})),
	}
}

// configurationSchema is a configuration with its schema.
type configurationSchema struct {
	configurationType
	kind *structure.Kind
}

// configurationSchemas returns the configurations with their schemas, read once.
var configurationSchemas = sync.OnceValues(func() (map[schema.GroupVersionKind]configurationSchema, error) {
	known, err := extensionConfigurationSchemas()
	if err != nil {
		return nil, err
	}
	known = maps.Clone(known)
	for _, c := range builtinConfigurationTypes() {
		kind, err := structure.KindFromGoType(c.gvk, c.goType)
		if err != nil {
			return nil, err
		}
		known[c.gvk] = configurationSchema{c, kind}
	}
	return known, nil
})

// embeddedObject is an object inside another one.
type embeddedObject struct {
	path    fieldpath.Path
	content map[string]any
}

func (e embeddedObject) gvk() schema.GroupVersionKind {
	apiVersion, _ := e.content["apiVersion"].(string)
	kind, _ := e.content["kind"].(string)
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// checkConfigurations returns the findings about the fields of embedded objects. A field that the
// process drops is a warning. A field that keeps the process from starting, or a value that it
// cannot decode, is an error.
func (w *worker) checkConfigurations(in ruleInput) ([]finding, error) {
	var found []embeddedObject
	if in.kind.GVK.Group == "" && in.kind.GVK.Kind == "ConfigMap" {
		found = parseConfigMapObjects(in.object)
	} else {
		found = findOpenObjects(nil, in.kind.Root, in.object, nil)
	}
	var findings []finding
	for _, object := range found {
		inside, err := w.checkConfiguration(in, object)
		if err != nil {
			return nil, err
		}
		findings = append(findings, inside...)
	}
	return findings, nil
}

func (w *worker) checkConfiguration(in ruleInput, object embeddedObject) ([]finding, error) {
	configurations, err := configurationSchemas()
	if err != nil {
		return nil, err
	}
	gvk := object.gvk()
	if slices.ContainsFunc(gardenletKinds(), func(k gardenletKind) bool { return k.name == in.kindName() }) && gvk.Kind == "" {
		// this field can hold nothing else
		gvk = schema.FromAPIVersionAndKind(gardenletconfigv1alpha1.APIVersion, gardenletconfigv1alpha1.Kind)
	}
	if gvk.Kind == "" || gvk.Version == "" {
		return checkConfigurationTypeMeta(in, object), nil
	}
	known, ok := configurations[gvk]
	if !ok {
		foreign, err := extensionConfigurationSchemas()
		return checkConfigurationGVK(object, foreign), err
	}
	clean, _ := known.kind.Normalise(object.content)
	broken := structuralFindings(known.kind, clean)
	clean, misspelt, names := correctFieldNames(known.kind, clean, broken)
	if len(names) > 0 {
		clean, _ = known.kind.Normalise(clean)
		broken = append(misspelt, structuralFindings(known.kind, clean)...)
	}
	broken = slices.DeleteFunc(names.restorePaths(broken), func(f finding) bool {
		return known.releasedSeparately && f.typ == TypeForbidden && f.suggestion == "" && groupWithField(configurations, gvk, f.path) == "" || slices.ContainsFunc(known.templatePaths, func(template string) bool { return isWithinPath(template, f.path) })
	})
	for i := range broken {
		f := &broken[i]
		f.path, f.suggestion = joinPath(object.path.String(), f.path), ""
		if known.releasedSeparately {
			f.rule, f.severity = ruleExtensionConfig, SeverityWarning
		}
		if f.documentPath != "" {
			f.documentPath = joinPath(object.path.String(), f.documentPath)
		}
		if f.typ != TypeForbidden {
			continue
		}
		switch {
		case known.releasedSeparately:
			if group := groupWithField(configurations, gvk, strings.TrimPrefix(f.path, object.path.String()+".")); group != "" {
				f.message += fmt.Sprintf("; it is one of %s", group)
			}
			f.message += fmt.Sprintf("; %s refuses or drops it", known.processName)
		case !known.strict:
			f.severity = SeverityWarning
			f.message += fmt.Sprintf("; %s drops it", known.processName)
		default:
			f.message += fmt.Sprintf("; %s does not start with it", known.processName)
		}
	}
	// for other kinds, rules cover embedded objects, too
	if in.kind.GVK.Group == "" {
		root := fieldValue{path: object.path.String(), value: object.content}
		for rule, found := range map[string][]finding{ruleRepeatedItems: findRepeatedItems(root), ruleSpaces: findOuterSpaces(root)} {
			for _, f := range found {
				f.rule, f.severity = rule, SeverityWarning
				broken = append(broken, f)
			}
		}
	}
	return broken, nil
}

// findOpenObjects returns the objects in fields with an open schema.
func findOpenObjects(path fieldpath.Path, n *structure.Node, value any, found []embeddedObject) []embeddedObject {
	if n == nil || n.Sensitive {
		return found
	}
	switch v := value.(type) {
	case map[string]any:
		if n.AllowsUnknownFields && len(n.Properties) == 0 {
			return append(found, embeddedObject{path, v})
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if child, ok := n.Properties[name]; ok {
				found = findOpenObjects(path.Append(name), child, v[name], found)
			} else if n.Additional != nil {
				found = findOpenObjects(path.Append(fieldpath.Key(name)), n.Additional, v[name], found)
			}
		}
	case []any:
		for i, item := range v {
			found = findOpenObjects(path.Append(i), n.Items, item, found)
		}
	}
	return found
}

// parseConfigMapObjects returns the objects that a ConfigMap holds as YAML.
func parseConfigMapObjects(configMap map[string]any) []embeddedObject {
	data, _ := configMap["data"].(map[string]any)
	var found []embeddedObject
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		if !strings.Contains(text, "apiVersion") {
			continue
		}
		var fields map[string]any
		if yaml.Unmarshal([]byte(text), &fields) == nil {
			found = append(found, embeddedObject{fieldpath.Path{"data", fieldpath.Key(key)}, fields})
		}
	}
	return found
}
