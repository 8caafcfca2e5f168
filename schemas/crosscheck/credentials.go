// SPDX-License-Identifier: Apache-2.0

package crosscheck

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

// findReferencedObject returns the object that a field names, or nil for another kind or an object
// outside the landscape.
func (c *checker) findReferencedObject(field, kind string) *schemas.Input {
	ref := mapAt(c.object(), strings.Split(field, ".")...)
	if textAt(ref, "kind") != kind {
		return nil
	}
	id := identity{kind: c.resolveKind(kind, textAt(ref, "apiVersion"), kindWorkloadIdentity), namespace: textAt(ref, "namespace"), name: textAt(ref, "name")}
	if id.namespace == "" {
		id.namespace = c.namespace()
	}
	return c.findObject(id)
}

// checkWorkloadIdentity checks that a WorkloadIdentity has the provider type of its user. The field
// types may be a comma-separated list, as in bindings. Source:
// plugin/pkg/global/resourcereferencemanager, plugin/pkg/seed/validator,
// plugin/pkg/global/backupbucketvalidator.
func checkWorkloadIdentity(ref, types string) func(*checker) {
	return func(c *checker) {
		in := c.findReferencedObject(ref, kindWorkloadIdentity.Kind)
		if in == nil {
			return
		}
		own, meant := textAt(c.object(), strings.Split(types, ".")...), textAt(in.Content().Object, "spec", "targetSystem", "type")
		if own != "" && meant != "" && !slices.Contains(strings.Split(own, ","), meant) {
			c.report(types, schemas.TypeInvalid, "%q is not the type of %s, which is for %q", own, objectPosition(in), meant)
		}
	}
}

// checkBindingProvider checks that a new Shoot's credentials are for its provider. A binding may
// list several types, separated by commas. Source: plugin/pkg/shoot/validator (validateProvider).
func (c *checker) checkBindingProvider() {
	if c.input.HasOld() {
		return
	}
	written := textAt(c.object(), "spec", "provider", "type")
	for _, binding := range []struct {
		field string
		kind  schema.GroupKind
	}{{"credentialsBindingName", kindCredentialsBinding}, {"secretBindingName", coreKind("SecretBinding")}} {
		in := c.findObject(identity{binding.kind, c.namespace(), textAt(c.object(), "spec", binding.field)})
		if in == nil {
			continue // the references rule reports it
		}
		if types := textAt(in.Content().Object, "provider", "type"); types != "" && written != "" && !slices.Contains(strings.Split(types, ","), written) {
			c.reportNew("spec.provider.type", schemas.TypeInvalid, "%q is not the provider of the credentials: %s is for %q", written, objectPosition(in), types)
		}
	}
}

// checkCredentialKeys checks that a binding's Secret has the keys that the provider extension
// reads. It reports no secret values.
func checkCredentialKeys(ref func(*checker) (namespace, name string)) func(*checker) {
	return func(c *checker) {
		namespace, name := ref(c)
		in := c.findObject(identity{kindSecret, namespace, name})
		if name == "" || in == nil {
			return
		}
		for _, provider := range strings.Split(textAt(c.object(), "provider", "type"), ",") {
			for _, field := range []string{"data", "stringData"} {
				values := mapAt(in.Content().Object, field)
				for key := range values { // findings are sorted
					if meant := schemas.SuggestCredentialKey(provider, key); meant != "" && values[meant] == nil {
						c.reportForObject(in, fieldpath.Path{field, fieldpath.Key(key)}.String(), schemas.TypeNotSupported, "the extension of the provider %q reads no key of this name; did you mean %q?", provider, meant)
					}
				}
			}
		}
	}
}

// credentialsBindingSecret returns the Secret of a CredentialsBinding, secretBindingSecret the
// Secret of a SecretBinding.
func credentialsBindingSecret(c *checker) (namespace, name string) {
	if textAt(c.object(), "credentialsRef", "kind") != kindSecret.Kind {
		return "", ""
	}
	return cmp.Or(textAt(c.object(), "credentialsRef", "namespace"), c.namespace()), textAt(c.object(), "credentialsRef", "name")
}

func secretBindingSecret(c *checker) (namespace, name string) {
	return cmp.Or(textAt(c.object(), "secretRef", "namespace"), c.namespace()), textAt(c.object(), "secretRef", "name")
}

// checkBindingNamespace checks the namespace of a binding's Secret. The gardenlet uses another
// namespace only if gardener-apiserver checked the author's access to the Secret
// (docs/reference/compatibility.md).
func checkBindingNamespace(field string) func(*checker) {
	return func(c *checker) {
		namespace := textAt(c.object(), field, "namespace")
		if namespace == "" || namespace == c.namespace() || field == "credentialsRef" && textAt(c.object(), field, "kind") != kindSecret.Kind {
			return
		}
		for _, in := range c.allOfKind(kindLandscape) {
			if textAt(in.Content().Object, "spec", "gardenAPI") == string(landscapev1alpha1.GardenAPIAggregated) {
				return
			}
		}
		if len(c.allOfKind(kindLandscape)) > 0 {
			c.report(field+".namespace", schemas.TypeInvalid, "a Secret of another namespace needs spec.gardenAPI: aggregated in landscape.yaml, or Shoots with the binding fail; declare the Secret also in namespace %s", c.namespace())
		}
	}
}

// checkPluginKubeconfigs checks that spec.resources lists an admission plugin's Secret, and that
// the Secret has a kubeconfig. Source: plugin/pkg/shoot/validator (validateAdmissionPlugins).
func (c *checker) checkPluginKubeconfigs() {
	visitValues(c.object(), "spec.kubernetes.kubeAPIServer.admissionPlugins[].kubeconfigSecretName", func(field string, value any) {
		name, ok := value.(string)
		if !ok || name == "" {
			return
		}
		listed := false
		visitValues(c.object(), "spec.resources[].resourceRef", func(_ string, ref any) {
			r, _ := ref.(map[string]any)
			listed = listed || textAt(r, "kind") == kindSecret.Kind && textAt(r, "apiVersion") == "v1" && textAt(r, "name") == name
		})
		if !listed {
			c.report(field, schemas.TypeInvalid, "the Secret %q must be listed in spec.resources, which brings it to the control plane", name)
			return
		}
		in := c.findObject(identity{kindSecret, c.namespace(), name})
		if in == nil {
			return // the references rule reports it
		}
		content := in.Content().Object
		if _, ok := mapAt(content, "data")[kubeconfigKey]; ok {
			return
		}
		if _, ok := mapAt(content, "stringData")[kubeconfigKey]; !ok {
			c.report(field, schemas.TypeInvalid, "%s has no key %s", objectPosition(in), kubeconfigKey)
		}
	})
}

// kubeconfigKey is the Secret key of a kubeconfig.
const kubeconfigKey = "kubeconfig"

// checkQuotaScopes checks that a binding has at most one quota per scope (project, credentials).
// Source: plugin/pkg/global/resourcereferencemanager.
func (c *checker) checkQuotaScopes() {
	first := map[string]string{}
	for i, item := range listAt(c.object(), "quotas") {
		ref, _ := item.(map[string]any)
		namespace := textAt(ref, "namespace")
		if namespace == "" {
			namespace = c.namespace()
		}
		in := c.findObject(identity{coreKind("Quota"), namespace, textAt(ref, "name")})
		if in == nil {
			continue // the references rule reports it
		}
		scope := "credentials"
		if textAt(in.Content().Object, "spec", "scope", "kind") == kindProject.Kind {
			scope = "project"
		}
		name := path.Join(namespace, textAt(ref, "name"))
		if earlier := first[scope]; earlier != "" {
			c.report(fmt.Sprintf("quotas[%d]", i), schemas.TypeForbidden, "the Quota %s is for the scope %s, as is %s; a binding has one quota for each scope", name, scope, earlier)
			continue
		}
		first[scope] = name
	}
}

// checkExposureScheduling checks that a new Shoot does not repeat the scheduling of its
// ExposureClass. Source: plugin/pkg/shoot/exposureclass.
func (c *checker) checkExposureScheduling() {
	class := c.findObject(identity{kind: kindExposureClass, name: textAt(c.object(), "spec", "exposureClassName")})
	if class == nil || c.input.HasOld() {
		return
	}
	scheduling := mapAt(class.Content().Object, "scheduling")
	wanted := mapAt(scheduling, "seedSelector", "matchLabels")
	for key, value := range mapAt(c.object(), "spec", "seedSelector", "matchLabels") {
		if other, both := wanted[key]; both && other != value {
			c.reportNew("spec.seedSelector.matchLabels["+key+"]", schemas.TypeForbidden, "%v is not %v, which %s requires; leave the label out, or choose another class", value, other, objectPosition(class))
		}
	}
	visitValues(scheduling, "tolerations[].key", func(_ string, key any) {
		visitValues(c.object(), "spec.tolerations[].key", func(field string, own any) {
			if own == key {
				c.reportNew(field, schemas.TypeForbidden, "%s adds the toleration %v; leave it out", objectPosition(class), key)
			}
		})
	})
}
