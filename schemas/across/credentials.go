package across

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// referred returns the object that a field names; nil for another kind or an object outside the
// landscape.
func (c *check) referred(field, kind string) *schemas.Input {
	ref := table(c.object(), strings.Split(field, ".")...)
	if text(ref, "kind") != kind {
		return nil
	}
	id := identity{kind: c.kindOf(kind, text(ref, "apiVersion"), kindWorkloadIdentity), namespace: text(ref, "namespace"), name: text(ref, "name")}
	if id.namespace == "" {
		id.namespace = c.namespace()
	}
	return c.find(id)
}

// workloadIdentity checks that a WorkloadIdentity has the provider type of its user. The field
// types may be a comma-separated list, as in bindings. Source:
// plugin/pkg/global/resourcereferencemanager, plugin/pkg/seed/validator,
// plugin/pkg/global/backupbucketvalidator.
func workloadIdentity(ref, types string) func(*check) {
	return func(c *check) {
		in := c.referred(ref, kindWorkloadIdentity.Kind)
		if in == nil {
			return
		}
		own, meant := text(c.object(), strings.Split(types, ".")...), text(in.Content().Object, "spec", "targetSystem", "type")
		if own != "" && meant != "" && !slices.Contains(strings.Split(own, ","), meant) {
			c.report(types, schemas.TypeInvalid, "%q is not the type of %s, which is for %q", own, place(in), meant)
		}
	}
}

// bindingProvider checks that a new Shoot's credentials are for its provider. A binding may list
// several types, separated by commas. Source: plugin/pkg/shoot/validator (validateProvider).
func (c *check) bindingProvider() {
	if c.in.HasOld() {
		return
	}
	written := text(c.object(), "spec", "provider", "type")
	for _, binding := range []struct {
		field string
		kind  schema.GroupKind
	}{{"credentialsBindingName", kindCredentialsBinding}, {"secretBindingName", core("SecretBinding")}} {
		in := c.find(identity{binding.kind, c.namespace(), text(c.object(), "spec", binding.field)})
		if in == nil {
			continue // the references rule reports it
		}
		if types := text(in.Content().Object, "provider", "type"); types != "" && written != "" && !slices.Contains(strings.Split(types, ","), written) {
			c.reportNew("spec.provider.type", schemas.TypeInvalid, "%q is not the provider of the credentials: %s is for %q", written, place(in), types)
		}
	}
}

// credentialKeys checks that a binding's Secret has the keys that the provider extension reads. It
// reports no secret values.
func credentialKeys(ref func(*check) (namespace, name string)) func(*check) {
	return func(c *check) {
		namespace, name := ref(c)
		in := c.find(identity{kindSecret, namespace, name})
		if name == "" || in == nil {
			return
		}
		for _, provider := range strings.Split(text(c.object(), "provider", "type"), ",") {
			for _, field := range []string{"data", "stringData"} {
				values := table(in.Content().Object, field)
				for key := range values { // findings are sorted
					if meant := schemas.SuggestCredentialKey(provider, key); meant != "" && values[meant] == nil {
						c.reportAbout(in, fieldpath.Path{field, fieldpath.Key(key)}.String(), schemas.TypeNotSupported, "the extension of the provider %q reads no key of this name; did you mean %q?", provider, meant)
					}
				}
			}
		}
	}
}

// credentialsOf returns the Secret of a CredentialsBinding, secretOf the Secret of a SecretBinding.
func credentialsOf(c *check) (namespace, name string) {
	if text(c.object(), "credentialsRef", "kind") != kindSecret.Kind {
		return "", ""
	}
	return cmp.Or(text(c.object(), "credentialsRef", "namespace"), c.namespace()), text(c.object(), "credentialsRef", "name")
}

func secretOf(c *check) (namespace, name string) {
	return cmp.Or(text(c.object(), "secretRef", "namespace"), c.namespace()), text(c.object(), "secretRef", "name")
}

// bindingNamespace checks the namespace of a binding's Secret. The gardenlet uses another namespace
// only if gardener-apiserver checked the author's access to the Secret (docs/gardenlet.md).
func bindingNamespace(field string) func(*check) {
	return func(c *check) {
		namespace := text(c.object(), field, "namespace")
		if namespace == "" || namespace == c.namespace() || field == "credentialsRef" && text(c.object(), field, "kind") != kindSecret.Kind {
			return
		}
		for _, in := range c.all(kindLandscape) {
			if text(in.Content().Object, "spec", "gardenAPI") == string(landscapev1alpha1.GardenAPIAggregated) {
				return
			}
		}
		if len(c.all(kindLandscape)) > 0 {
			c.report(field+".namespace", schemas.TypeInvalid, "a Secret of another namespace counts with spec.gardenAPI: aggregated in landscape.yaml only, so that Shoots with the binding fail; declare the Secret in namespace %s, too", c.namespace())
		}
	}
}

// pluginKubeconfigs checks that spec.resources lists an admission plugin's Secret, and that the
// Secret has a kubeconfig. Source: plugin/pkg/shoot/validator (validateAdmissionPlugins).
func (c *check) pluginKubeconfigs() {
	each(c.object(), "spec.kubernetes.kubeAPIServer.admissionPlugins[].kubeconfigSecretName", func(field string, value any) {
		name, ok := value.(string)
		if !ok || name == "" {
			return
		}
		listed := false
		each(c.object(), "spec.resources[].resourceRef", func(_ string, ref any) {
			r, _ := ref.(map[string]any)
			listed = listed || text(r, "kind") == kindSecret.Kind && text(r, "apiVersion") == "v1" && text(r, "name") == name
		})
		if !listed {
			c.report(field, schemas.TypeInvalid, "the Secret %q must be listed in spec.resources, which brings it to the control plane", name)
			return
		}
		in := c.find(identity{kindSecret, c.namespace(), name})
		if in == nil {
			return // the references rule reports it
		}
		content := in.Content().Object
		if _, ok := table(content, "data")[keyKubeconfig]; ok {
			return
		}
		if _, ok := table(content, "stringData")[keyKubeconfig]; !ok {
			c.report(field, schemas.TypeInvalid, "%s has no key %s", place(in), keyKubeconfig)
		}
	})
}

// keyKubeconfig is the Secret key of a kubeconfig.
const keyKubeconfig = "kubeconfig"

// quotaScopes checks that a binding has at most one quota per scope (project, credentials). Source:
// plugin/pkg/global/resourcereferencemanager.
func (c *check) quotaScopes() {
	first := map[string]string{}
	for i, item := range list(c.object(), "quotas") {
		ref, _ := item.(map[string]any)
		namespace := text(ref, "namespace")
		if namespace == "" {
			namespace = c.namespace()
		}
		in := c.find(identity{core("Quota"), namespace, text(ref, "name")})
		if in == nil {
			continue // the references rule reports it
		}
		scope := "credentials"
		if text(in.Content().Object, "spec", "scope", "kind") == kindProject.Kind {
			scope = "project"
		}
		name := path.Join(namespace, text(ref, "name"))
		if earlier := first[scope]; earlier != "" {
			c.report(fmt.Sprintf("quotas[%d]", i), schemas.TypeForbidden, "the Quota %s is for the scope %s, as is %s; a binding has one quota for each scope", name, scope, earlier)
			continue
		}
		first[scope] = name
	}
}

// exposureScheduling checks that a new Shoot does not repeat the scheduling of its ExposureClass.
// Source: plugin/pkg/shoot/exposureclass.
func (c *check) exposureScheduling() {
	class := c.find(identity{kind: kindExposureClass, name: text(c.object(), "spec", "exposureClassName")})
	if class == nil || c.in.HasOld() {
		return
	}
	scheduling := table(class.Content().Object, "scheduling")
	wanted := table(scheduling, "seedSelector", "matchLabels")
	for key, value := range table(c.object(), "spec", "seedSelector", "matchLabels") {
		if other, both := wanted[key]; both && other != value {
			c.reportNew("spec.seedSelector.matchLabels["+key+"]", schemas.TypeForbidden, "%v is not %v, which %s asks for; leave the label out, or take another class", value, other, place(class))
		}
	}
	each(scheduling, "tolerations[].key", func(_ string, key any) {
		each(c.object(), "spec.tolerations[].key", func(field string, own any) {
			if own == key {
				c.reportNew(field, schemas.TypeForbidden, "%s adds the toleration %v; leave it out", place(class), key)
			}
		})
	})
}
