// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConfigReference is a ConfigMap or Secret for the control plane of a Garden or Shoot. It is in the
// namespace of the Shoot, or in namespace garden.
type ConfigReference struct {
	// Kind is Secret or ConfigMap.
	Kind, Name string
	// Fields are the declaration's fields that name the object.
	Fields []string
}

// ControlPlaneReferences returns the references that a Garden's or Shoot's control plane needs, by
// kind and name. kube-apiserver, gardener-apiserver and dashboards mount them. Shoots also pass
// spec.resources to extensions. References in other fields are not included.
func ControlPlaneReferences(kind string, object map[string]any) []ConfigReference {
	return filterReferences(kind, object, isControlPlaneReference)
}

// ConfigReferences returns all ConfigMaps and Secrets that an object refers to, by kind and name.
func ConfigReferences(kind string, object map[string]any) []ConfigReference {
	return filterReferences(kind, object, func(referenceField) bool { return true })
}

// ReferencedObject is an object that another object refers to.
type ReferencedObject struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// ReferencedObjects returns all objects that an object refers to. A Project refers to its
// namespace.
func ReferencedObjects(o *unstructured.Unstructured) []ReferencedObject {
	var out []ReferencedObject
	for _, r := range referenceFields() {
		if r.referrerKind != o.GetKind() {
			continue
		}
		visitValues(o.Object, r.path, func(_ string, value any) {
			if id := r.target(value, o.GetNamespace(), referencedKind); id.name != "" {
				out = append(out, ReferencedObject{Kind: id.kind, Namespace: id.namespace, Name: id.name})
			}
		})
	}
	if namespace := textAt(o.Object, "spec", "namespace"); o.GetKind() == kindProject.Kind && namespace != "" {
		out = append(out, ReferencedObject{Kind: kindNamespace, Name: namespace})
	}
	return out
}

// referencedKind returns the kind in a reference. Without a version it has the group of the
// expected kind.
func referencedKind(kind, version string, meant schema.GroupKind) schema.GroupKind {
	if version == "" {
		return schema.GroupKind{Group: meant.Group, Kind: kind}
	}
	return schema.FromAPIVersionAndKind(version, kind).GroupKind()
}

// ShootBinding returns the binding to a Shoot's infrastructure account, or false if the Shoot has
// none. Shoots without workers need no infrastructure.
func ShootBinding(shoot map[string]any) (ConfigReference, bool) {
	spec := mapAt(shoot, "spec")
	if len(listAt(mapAt(spec, "provider"), "workers")) == 0 {
		return ConfigReference{}, false
	}
	// at most one field is set
	for field, kind := range map[string]string{"credentialsBindingName": kindCredentialsBinding.Kind, "secretBindingName": "SecretBinding"} {
		if name := textAt(spec, field); name != "" {
			return ConfigReference{Kind: kind, Name: name, Fields: []string{"spec." + field}}, true
		}
	}
	return ConfigReference{}, false
}

// BindingCredentials returns the field of a SecretBinding or CredentialsBinding that names
// credentials, and their kind, namespace and name.
func BindingCredentials(binding map[string]any) (field string, kind schema.GroupKind, namespace, name string) {
	field, kind = "secretRef", kindSecret
	if textAt(binding, "kind") == kindCredentialsBinding.Kind {
		field = "credentialsRef"
	}
	ref := mapAt(binding, field)
	if of := textAt(ref, "kind"); of != "" && field == "credentialsRef" {
		kind = schema.FromAPIVersionAndKind(textAt(ref, "apiVersion"), of).GroupKind()
	}
	return field, kind, cmp.Or(textAt(ref, "namespace"), textAt(binding, "metadata", "namespace")), textAt(ref, "name")
}

func filterReferences(kind string, object map[string]any, counts func(referenceField) bool) []ConfigReference {
	var out []ConfigReference
	for _, r := range referenceFields() {
		if r.referrerKind != kind || !counts(r) {
			continue
		}
		visitValues(object, r.path, func(path string, value any) {
			to, name, field := r.targetKind, "", path
			switch v := value.(type) {
			case string:
				name = v
			case map[string]any:
				name, field = textAt(v, "name"), path+".name"
				if of := textAt(v, "kind"); of != "" {
					to = schema.FromAPIVersionAndKind(textAt(v, "apiVersion"), of).GroupKind()
				}
			}
			if name == "" || to != kindSecret && to != kindConfigMap {
				return // the structure reports missing names; other kinds belong to extensions
			}
			same := func(o ConfigReference) bool { return o.Kind == to.Kind && o.Name == name }
			if i := slices.IndexFunc(out, same); i >= 0 {
				out[i].Fields = append(out[i].Fields, field)
				return
			}
			out = append(out, ConfigReference{Kind: to.Kind, Name: name, Fields: []string{field}})
		})
	}
	slices.SortFunc(out, func(a, b ConfigReference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func isControlPlaneReference(r referenceField) bool {
	return strings.HasPrefix(r.path, gardenKubeAPIServerPath+".") || strings.HasPrefix(r.path, gardenAPIServerPath+".") || strings.HasPrefix(r.path, shootKubeAPIServerPath+".") || isDashboardField(r.path) || r.referrerKind == "Shoot" && r.path == "spec.resources[].resourceRef"
}

// isDashboardField reports whether a field configures a server in front of a Garden's control
// plane. Such a server can wait for missing objects.
func isDashboardField(field string) bool {
	return strings.HasPrefix(field, gardenDashboardPath+".") || strings.HasPrefix(field, gardenDiscoveryPath+".")
}

// IsDashboardOnly reports whether no API server needs the reference.
func (r ConfigReference) IsDashboardOnly() bool {
	return !slices.ContainsFunc(r.Fields, func(field string) bool { return !isDashboardField(field) })
}

// IsKeyDependent reports whether the consumer depends on the set of keys in the Secret.
func (r ConfigReference) IsKeyDependent() bool {
	return slices.ContainsFunc(r.Fields, func(field string) bool { return strings.HasSuffix(field, ".gitHub.secretRef.name") })
}

// HasTrustedCertificates reports whether a Secret has certificates that other parties must trust.
func (r ConfigReference) HasTrustedCertificates() bool {
	return slices.ContainsFunc(r.Fields, func(field string) bool {
		return strings.HasSuffix(field, ".certificateAuthoritySecretRef.name") || strings.HasSuffix(field, ".sni.secretName")
	})
}

// CheckContent returns an error if a mounted key is missing or its API server cannot read the
// content. Errors contain no secret values.
func (r ConfigReference) CheckContent(data map[string]string) error {
	for _, field := range r.Fields {
		keys, read := mountedKeysOfField(field)
		for _, key := range keys {
			content, has := data[key]
			if !has {
				return fmt.Errorf("has no key %q, which %s needs", key, field)
			}
			if read == nil {
				continue
			}
			_, found := read(content)
			if len(found.startupProblems()) > 0 {
				return fmt.Errorf("is not valid for %s: data[%s]: %w", field, key, found.startupProblems())
			}
		}
	}
	return nil
}

// MountedKeys returns the keys whose content is mounted.
func (r ConfigReference) MountedKeys() []string {
	var out []string
	for _, field := range r.Fields {
		keys, _ := mountedKeysOfField(field)
		out = append(out, keys...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// mountedKeysOfField returns the keys that a field mounts, and the function that reads their
// content.
func mountedKeysOfField(field string) (keys []string, read func(string) (runtime.Object, configProblems)) {
	switch {
	case strings.HasSuffix(field, auditPolicyRefPath+".name"):
		return []string{auditPolicyKey}, readAuditPolicy
	case strings.HasSuffix(field, ".structuredAuthentication.configMapName"):
		return []string{apiServerConfigKey}, readAuthentication
	case strings.HasSuffix(field, ".structuredAuthorization.configMapName"):
		return []string{apiServerConfigKey}, readAuthorization
	case strings.HasSuffix(field, ".kubeconfigSecretName"), strings.Contains(field, ".structuredAuthorization.kubeconfigs["):
		return []string{kubeconfigKey}, nil
	case strings.HasSuffix(field, ".frontendConfigMapRef.name"):
		return []string{frontendConfigKey}, readFrontendConfig
	case strings.HasSuffix(field, ".oidcConfig.certificateAuthoritySecretRef.name"):
		return []string{"ca.crt"}, nil
	case strings.HasSuffix(field, ".sni.secretName"), strings.HasSuffix(field, ".tlsSecretName"):
		return []string{"tls.crt", "tls.key"}, nil
	}
	return nil, nil
}
