package across

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reference is a ConfigMap or Secret for the control plane of a Garden or Shoot. It is in the
// namespace of the Shoot, or in namespace garden.
type Reference struct {
	// Kind is Secret or ConfigMap.
	Kind, Name string
	// Fields are the declaration's fields that name the object.
	Fields []string
}

// ControlPlaneReferences returns the references that a Garden's or Shoot's control plane needs, by
// kind and name. kube-apiserver, gardener-apiserver and dashboards mount them. Shoots also pass
// spec.resources to extensions. References in other fields are not included.
func ControlPlaneReferences(kind string, object map[string]any) []Reference {
	return referencesOf(kind, object, isForControlPlane)
}

// References returns all ConfigMaps and Secrets that an object refers to, by kind and name.
func References(kind string, object map[string]any) []Reference {
	return referencesOf(kind, object, func(reference) bool { return true })
}

// Referred is an object that another object refers to.
type Referred struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// ReferredBy returns all objects that an object refers to. A Project refers to its namespace.
func ReferredBy(o *unstructured.Unstructured) []Referred {
	var out []Referred
	for _, r := range references() {
		if r.of != o.GetKind() {
			continue
		}
		each(o.Object, r.path, func(_ string, value any) {
			if id := r.target(value, o.GetNamespace(), writtenKind); id.name != "" {
				out = append(out, Referred{Kind: id.kind, Namespace: id.namespace, Name: id.name})
			}
		})
	}
	if namespace := text(o.Object, "spec", "namespace"); o.GetKind() == kindProject.Kind && namespace != "" {
		out = append(out, Referred{Kind: kindNamespace, Name: namespace})
	}
	return out
}

// writtenKind returns the kind in a reference. Without a version it has the group of the expected
// kind.
func writtenKind(kind, version string, meant schema.GroupKind) schema.GroupKind {
	if version == "" {
		return schema.GroupKind{Group: meant.Group, Kind: kind}
	}
	return schema.FromAPIVersionAndKind(version, kind).GroupKind()
}

// Credentials returns the binding to a Shoot's infrastructure account; false if the Shoot has none.
// Shoots without workers need no infrastructure.
func Credentials(shoot map[string]any) (Reference, bool) {
	spec := table(shoot, "spec")
	if len(list(table(spec, "provider"), "workers")) == 0 {
		return Reference{}, false
	}
	// at most one field is set
	for field, kind := range map[string]string{"credentialsBindingName": kindCredentialsBinding.Kind, "secretBindingName": "SecretBinding"} {
		if name := text(spec, field); name != "" {
			return Reference{Kind: kind, Name: name, Fields: []string{"spec." + field}}, true
		}
	}
	return Reference{}, false
}

// CredentialsOf returns the field of a SecretBinding or CredentialsBinding that names credentials,
// and their kind, namespace and name.
func CredentialsOf(binding map[string]any) (field string, kind schema.GroupKind, namespace, name string) {
	field, kind = "secretRef", kindSecret
	if text(binding, "kind") == kindCredentialsBinding.Kind {
		field = "credentialsRef"
	}
	ref := table(binding, field)
	if of := text(ref, "kind"); of != "" && field == "credentialsRef" {
		kind = schema.FromAPIVersionAndKind(text(ref, "apiVersion"), of).GroupKind()
	}
	return field, kind, cmp.Or(text(ref, "namespace"), text(binding, "metadata", "namespace")), text(ref, "name")
}

func referencesOf(kind string, object map[string]any, counts func(reference) bool) []Reference {
	var out []Reference
	for _, r := range references() {
		if r.of != kind || !counts(r) {
			continue
		}
		each(object, r.path, func(path string, value any) {
			to, name, field := r.to, "", path
			switch v := value.(type) {
			case string:
				name = v
			case map[string]any:
				name, field = text(v, "name"), path+".name"
				if of := text(v, "kind"); of != "" {
					to = schema.FromAPIVersionAndKind(text(v, "apiVersion"), of).GroupKind()
				}
			}
			if name == "" || to != kindSecret && to != kindConfigMap {
				return // the structure reports missing names; other kinds belong to extensions
			}
			same := func(o Reference) bool { return o.Kind == to.Kind && o.Name == name }
			if i := slices.IndexFunc(out, same); i >= 0 {
				out[i].Fields = append(out[i].Fields, field)
				return
			}
			out = append(out, Reference{Kind: to.Kind, Name: name, Fields: []string{field}})
		})
	}
	slices.SortFunc(out, func(a, b Reference) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return out
}

func isForControlPlane(r reference) bool {
	return strings.HasPrefix(r.path, gardenKube+".") || strings.HasPrefix(r.path, gardenAPI+".") || strings.HasPrefix(r.path, shootKube+".") || isForDashboards(r.path) || r.of == "Shoot" && r.path == "spec.resources[].resourceRef"
}

// isForDashboards reports whether a field configures a server in front of a Garden's control plane.
// Such a server can wait for missing objects.
func isForDashboards(field string) bool {
	return strings.HasPrefix(field, gardenDashboard+".") || strings.HasPrefix(field, gardenDiscovery+".")
}

// ForDashboards reports whether no API server needs the reference.
func (r Reference) ForDashboards() bool {
	return !slices.ContainsFunc(r.Fields, func(field string) bool { return !isForDashboards(field) })
}

// KeysMatter reports whether the consumer depends on the set of keys in the Secret.
func (r Reference) KeysMatter() bool {
	return slices.ContainsFunc(r.Fields, func(field string) bool { return strings.HasSuffix(field, ".gitHub.secretRef.name") })
}

// IsAuthority reports whether a Secret has certificates that other parties must trust.
func (r Reference) IsAuthority() bool {
	return slices.ContainsFunc(r.Fields, func(field string) bool {
		return strings.HasSuffix(field, ".certificateAuthoritySecretRef.name") || strings.HasSuffix(field, ".sni.secretName")
	})
}

// Check returns an error if a mounted key is missing or its API server cannot read the content.
// Errors contain no secret values.
func (r Reference) Check(data map[string]string) error {
	for _, field := range r.Fields {
		keys, read := fileOf(field)
		for _, key := range keys {
			content, has := data[key]
			if !has {
				return fmt.Errorf("has no key %q, which %s needs", key, field)
			}
			if read == nil {
				continue
			}
			_, found := read(content)
			if len(found.faults()) > 0 {
				return fmt.Errorf("is not what %s has to be: data[%s]: %w", field, key, found.faults())
			}
		}
	}
	return nil
}

// Files returns the keys whose content is mounted.
func (r Reference) Files() []string {
	var out []string
	for _, field := range r.Fields {
		keys, _ := fileOf(field)
		out = append(out, keys...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fileOf returns the keys that a field mounts, and the function that reads their content.
func fileOf(field string) (keys []string, read func(string) (runtime.Object, problems)) {
	switch {
	case strings.HasSuffix(field, policyRef+".name"):
		return []string{keyPolicy}, readAuditPolicy
	case strings.HasSuffix(field, ".structuredAuthentication.configMapName"):
		return []string{keyConfig}, readAuthentication
	case strings.HasSuffix(field, ".structuredAuthorization.configMapName"):
		return []string{keyConfig}, readAuthorization
	case strings.HasSuffix(field, ".kubeconfigSecretName"), strings.Contains(field, ".structuredAuthorization.kubeconfigs["):
		return []string{keyKubeconfig}, nil
	case strings.HasSuffix(field, ".frontendConfigMapRef.name"):
		return []string{keyFrontend}, readFrontend
	case strings.HasSuffix(field, ".oidcConfig.certificateAuthoritySecretRef.name"):
		return []string{"ca.crt"}, nil
	case strings.HasSuffix(field, ".sni.secretName"), strings.HasSuffix(field, ".tlsSecretName"):
		return []string{"tls.crt", "tls.key"}, nil
	}
	return nil, nil
}
