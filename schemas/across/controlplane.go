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

// Reference is a ConfigMap or Secret that the control plane of a Garden or Shoot gets. It is in the
// namespace of the Shoot, or in namespace garden.
type Reference struct {
	// Kind is Secret or ConfigMap.
	Kind, Name string
	// Fields of the declaration that name it.
	Fields []string
}

// ControlPlaneReferences are those of an object of a kind (Garden, Shoot), by kind and name: what
// its kube-apiserver (of a Garden also gardener-apiserver) mounts, and what a Shoot hands to
// extensions (spec.resources). Of a Garden the latter stay where they are. What is referred to by
// other fields gets there in other ways, or not at all.
func ControlPlaneReferences(kind string, object map[string]any) []Reference {
	return referencesOf(kind, object, isForControlPlane)
}

// References are all ConfigMaps and Secrets that an object of a kind refers to, by kind and name.
func References(kind string, object map[string]any) []Reference {
	return referencesOf(kind, object, func(reference) bool { return true })
}

// Referred is an object that another one refers to.
type Referred struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// ReferredBy are the objects that one of a known kind refers to, of any kind; a Project refers to
// its namespace.
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

// writtenKind is the kind that a reference writes; one without a version is in the group of the
// kind that is meant.
func writtenKind(kind, version string, meant schema.GroupKind) schema.GroupKind {
	if version == "" {
		return schema.GroupKind{Group: meant.Group, Kind: kind}
	}
	return schema.FromAPIVersionAndKind(version, kind).GroupKind()
}

// Credentials is the binding by which a Shoot uses the account of an infrastructure, false where it
// names none. Without workers a Shoot needs no infrastructure.
func Credentials(shoot map[string]any) (Reference, bool) {
	spec := table(shoot, "spec")
	if len(list(table(spec, "provider"), "workers")) == 0 {
		return Reference{}, false
	}
	// one at most
	for field, kind := range map[string]string{"credentialsBindingName": kindCredentialsBinding.Kind, "secretBindingName": "SecretBinding"} {
		if name := text(spec, field); name != "" {
			return Reference{Kind: kind, Name: name, Fields: []string{"spec." + field}}, true
		}
	}
	return Reference{}, false
}

// CredentialsOf gives the field of a SecretBinding or CredentialsBinding that names credentials,
// their kind, namespace and name.
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
				return // the structure says so; and what else there is of kinds is for extensions
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

// isForDashboards: what is before the control plane of a Garden, and can wait while something is
// missing.
func isForDashboards(field string) bool {
	return strings.HasPrefix(field, gardenDashboard+".") || strings.HasPrefix(field, gardenDiscovery+".")
}

// ForDashboards tells whether no API server needs it.
func (r Reference) ForDashboards() bool {
	return !slices.ContainsFunc(r.Fields, func(field string) bool { return !isForDashboards(field) })
}

// KeysMatter tells whether the use depends on which keys a Secret has.
func (r Reference) KeysMatter() bool {
	return slices.ContainsFunc(r.Fields, func(field string) bool { return strings.HasSuffix(field, ".gitHub.secretRef.name") })
}

// IsAuthority tells whether a Secret has certificates that somebody else has to believe.
func (r Reference) IsAuthority() bool {
	return slices.ContainsFunc(r.Fields, func(field string) bool {
		return strings.HasSuffix(field, ".certificateAuthoritySecretRef.name") || strings.HasSuffix(field, ".sni.secretName")
	})
}

// Check looks at the content of what is referred to, as far as its use says what that has to be:
// the keys that are mounted are there, and configurations are such as their API server can read.
// Values are in no error.
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

// Files are the keys whose content is mounted.
func (r Reference) Files() []string {
	var out []string
	for _, field := range r.Fields {
		keys, _ := fileOf(field)
		out = append(out, keys...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fileOf gives the keys that a field has mounted, and how their content is read.
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
