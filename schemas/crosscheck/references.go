// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
)

// Namespace of the object that a reference names.
const (
	namespaceOfReferrer = "own"    // namespace of the referring object
	namespaceGarden     = "garden" // namespace garden
	namespaceNone       = ""       // cluster-scoped
	namespaceAsWritten  = "?"      // namespace field of the reference, else of the referrer
)

// referenceField is a field that names another object: a name, or a structure with a name and
// optionally kind, apiVersion and namespace.
type referenceField struct {
	referrerKind string // kind of the referring object, as in rules
	path         string
	targetKind   schema.GroupKind // default if the field has no kind
	namespace    string
}

// referenceFields returns the reference fields of the API. Upstream: the reference protection of
// Gardens, Seeds, Shoots and ControllerDeployments (pkg/controller/reference) and the admission
// plugin ResourceReferenceManager.
func referenceFields() []referenceField {
	garden := func(path string, to schema.GroupKind) referenceField {
		return referenceField{"Garden", path, to, namespaceGarden}
	}
	shoot := func(path string, to schema.GroupKind) referenceField {
		return referenceField{"Shoot", path, to, namespaceOfReferrer}
	}
	seed := func(path string) referenceField { return referenceField{"Seed", path, kindSecret, namespaceAsWritten} }
	const kube, gapi, dashboard = "spec.virtualCluster.kubernetes.kubeAPIServer.", "spec.virtualCluster.gardener.gardenerAPIServer.", "spec.virtualCluster.gardener.gardenerDashboard."
	return []referenceField{
		garden("spec.dns.providers[].secretRef", kindSecret),
		garden("spec.resources[].resourceRef", kindSecret),
		garden("spec.virtualCluster.etcd.main.backup.secretRef", kindSecret),
		garden(kube+"admissionPlugins[].kubeconfigSecretName", kindSecret),
		garden(kube+"auditConfig.auditPolicy.configMapRef", kindConfigMap),
		garden(kube+"auditWebhook.kubeconfigSecretName", kindSecret),
		garden(kube+"authentication.webhook.kubeconfigSecretName", kindSecret),
		garden(kube+"sni.secretName", kindSecret),
		garden(kube+"structuredAuthentication.configMapName", kindConfigMap),
		garden(kube+"structuredAuthorization.configMapName", kindConfigMap),
		garden(kube+"structuredAuthorization.kubeconfigs[].secretName", kindSecret),
		garden(gapi+"admissionPlugins[].kubeconfigSecretName", kindSecret),
		garden(gapi+"auditConfig.auditPolicy.configMapRef", kindConfigMap),
		garden(gapi+"auditWebhook.kubeconfigSecretName", kindSecret),
		garden(dashboard+"assetsConfigMapRef", kindConfigMap),
		garden(dashboard+"frontendConfigMapRef", kindConfigMap),
		garden(dashboard+"gitHub.secretRef", kindSecret),
		garden(dashboard+"oidcConfig.certificateAuthoritySecretRef", kindSecret),
		garden(dashboard+"oidcConfig.secretRef", kindSecret),
		garden(dashboard+"tlsSecretName", kindSecret),
		garden("spec.virtualCluster.gardener.gardenerDiscoveryServer.tlsSecretName", kindSecret),

		seed("spec.backup.credentialsRef"), seed("spec.dns.provider.credentialsRef"),
		seed("spec.dns.internal.credentialsRef"), seed("spec.dns.defaults[].credentialsRef"),
		{"Seed", "spec.resources[].resourceRef", kindSecret, namespaceGarden},

		shoot("spec.credentialsBindingName", kindCredentialsBinding),
		shoot("spec.secretBindingName", coreKind("SecretBinding")),
		{"Shoot", "spec.exposureClassName", kindExposureClass, namespaceNone},
		shoot("spec.dns.providers[].credentialsRef", kindSecret),
		shoot("spec.dns.providers[].secretName", kindSecret),
		shoot("spec.kubernetes.kubeAPIServer.admissionPlugins[].kubeconfigSecretName", kindSecret),
		shoot("spec.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef", kindConfigMap),
		shoot("spec.kubernetes.kubeAPIServer.structuredAuthentication.configMapName", kindConfigMap),
		shoot("spec.kubernetes.kubeAPIServer.structuredAuthorization.configMapName", kindConfigMap),
		shoot("spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[].secretName", kindSecret),
		shoot("spec.provider.workers[].controlPlane.backup.credentialsRef", kindSecret),
		shoot("spec.resources[].resourceRef", kindSecret),

		{"SecretBinding", "secretRef", kindSecret, namespaceAsWritten},
		{"SecretBinding", "quotas[]", coreKind("Quota"), namespaceAsWritten},
		{"CredentialsBinding", "credentialsRef", kindSecret, namespaceAsWritten},
		{"CredentialsBinding", "quotas[]", coreKind("Quota"), namespaceAsWritten},
		{"NamespacedCloudProfile", "spec.parent", kindCloudProfile, namespaceNone},
		{"BackupBucket", "spec.seedName", kindSeed, namespaceNone},
		{"BackupBucket", "spec.credentialsRef", kindSecret, namespaceAsWritten},
		{"BackupEntry", "spec.seedName", kindSeed, namespaceNone},
		{"BackupEntry", "spec.bucketName", coreKind("BackupBucket"), namespaceNone},
		{"ControllerRegistration", "spec.deployment.deploymentRefs[]", coreKind("ControllerDeployment"), namespaceNone},
		{"ControllerDeployment", "resources[].resourceRef", kindSecret, namespaceGarden},
		{"ControllerDeployment", "helm.ociRepository.pullSecretRef", kindSecret, namespaceGarden},
		{"ControllerDeployment", "helm.ociRepository.caBundleSecretRef", kindSecret, namespaceGarden},
		{"ControllerInstallation", "spec.registrationRef", kindRegistration, namespaceNone},
		{"ControllerInstallation", "spec.deploymentRef", coreKind("ControllerDeployment"), namespaceNone},
		{"ControllerInstallation", "spec.seedRef", kindSeed, namespaceNone},
		{"Extension", "spec.deployment.extension.helm.ociRepository.pullSecretRef", kindSecret, namespaceGarden},
		{"Extension", "spec.deployment.extension.helm.ociRepository.caBundleSecretRef", kindSecret, namespaceGarden},
		{"Extension", "spec.deployment.admission.runtimeCluster.helm.ociRepository.pullSecretRef", kindSecret, namespaceGarden},
		{"Extension", "spec.deployment.admission.runtimeCluster.helm.ociRepository.caBundleSecretRef", kindSecret, namespaceGarden},
		{"Extension", "spec.deployment.admission.virtualCluster.helm.ociRepository.pullSecretRef", kindSecret, namespaceGarden},
		{"Extension", "spec.deployment.admission.virtualCluster.helm.ociRepository.caBundleSecretRef", kindSecret, namespaceGarden},
		{"Extension", "spec.deployment.resources[].resourceRef", kindSecret, namespaceGarden},
		{"Gardenlet", "spec.kubeconfigSecretRef", kindSecret, namespaceOfReferrer},
		{"Gardenlet", "spec.deployment.helm.ociRepository.pullSecretRef", kindSecret, namespaceOfReferrer},
		{"Gardenlet", "spec.deployment.helm.ociRepository.caBundleSecretRef", kindSecret, namespaceOfReferrer},
		{"ManagedSeed", "spec.shoot", kindShoot, namespaceOfReferrer},
		{"Bastion", "spec.shootRef", kindShoot, namespaceOfReferrer},
	}
}

// checkSeedReferences checks the references in a gardenlet's template of its Seed.
func checkSeedReferences(kind string) func(*checker) {
	return func(c *checker) {
		for _, r := range referenceFields() {
			if r.referrerKind != kindSeed.Kind {
				continue
			}
			r.path = strings.Join(seedTemplatePaths[kind], ".") + "." + r.path
			visitValues(c.object(), r.path, func(path string, value any) { c.checkExists(r, path, value) })
		}
	}
}

// referenceRules returns one rule per kind, for all its references.
func referenceRules() []rule {
	byKind := map[string][]referenceField{}
	for _, r := range referenceFields() {
		byKind[r.referrerKind] = append(byKind[r.referrerKind], r)
	}
	var out []rule
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		refs := byKind[kind]
		var fields []string
		for _, r := range refs {
			fields = append(fields, strings.ReplaceAll(r.path, "[]", ""))
		}
		slices.Sort(fields)
		out = append(out, rule{schemas.Rule{
			ID: strings.ToLower(kind) + "/references", Kind: kind, Language: "go", File: "schemas/crosscheck/references.go", Scope: "landscape", Severity: schemas.SeverityError, Class: schemas.ClassStatic, Fields: slices.Compact(fields),
			Title:  "Objects that " + withArticle(kind) + " refers to exist",
			Doc:    "The object is declared in the landscape. List objects that are created manually, by another tool or through the API under spec.external in landscape.yaml.",
			Source: "plugin/pkg/global/resourcereferencemanager; pkg/gardenlet and pkg/operator wait for missing objects",
		}, func(c *checker) {
			for _, r := range refs {
				visitValues(c.object(), r.path, func(path string, value any) { c.checkExists(r, path, value) })
			}
		}})
	}
	return out
}

func withArticle(kind string) string {
	if strings.ContainsAny(kind[:1], "AEIOU") {
		return "an " + kind
	}
	return "a " + kind
}

// target returns the object that the value of a reference names. The name is empty if the value has
// none. own is the namespace of the referring object.
func (r referenceField) target(value any, own string, kindOf func(kind, version string, meant schema.GroupKind) schema.GroupKind) identity {
	id := identity{kind: r.targetKind}
	switch v := value.(type) {
	case string:
		id.name = v
	case map[string]any:
		id.name = textAt(v, "name")
		if kind := textAt(v, "kind"); kind != "" {
			id.kind = kindOf(kind, textAt(v, "apiVersion"), r.targetKind)
		}
		if r.namespace == namespaceAsWritten {
			id.namespace = textAt(v, "namespace")
		}
	}
	switch {
	case r.namespace == namespaceGarden:
		id.namespace = gardencorev1beta1.GardenNamespace
	case r.namespace == namespaceOfReferrer, r.namespace == namespaceAsWritten && id.namespace == "":
		id.namespace = own
	}
	return id
}

// checkExists reports a reference to a missing object.
func (c *checker) checkExists(r referenceField, at string, value any) {
	id, field := r.target(value, c.namespace(), c.resolveKind), at
	if _, isTable := value.(map[string]any); isTable {
		field = at + ".name"
	}
	if id.name == "" {
		return // the structure reports it
	}
	if id.namespace == "" && r.namespace != namespaceNone && c.isNamespaced(id.kind) {
		return // the rules about the object itself report a missing namespace
	}
	if c.hasObject(id) {
		if !c.reportAnnotatedCluster(r, field, id) {
			c.checkTargetCluster(r, field, id)
		}
		c.checkSecretKeys(field, id)
		return
	}
	if c.isExternal(id) || !canBeReferenced(id) {
		return // the rules about the object itself report invalid targets
	}
	where := ""
	if id.namespace != "" {
		where = fmt.Sprintf(" in namespace %s", id.namespace)
	}
	c.report(field, schemas.TypeInvalid, "there is no %s %q%s in this landscape%s; declare it, or list it in landscape.yaml under spec.external", id.kind.Kind, id.name, where, c.suggestName(id))
}

// IsMissingReference reports whether a finding is about a missing object. If only part of the files
// is read, the object may be in another part.
func IsMissingReference(v schemas.Violation) bool {
	return strings.HasSuffix(v.Rule, "/references") || slices.Contains([]string{"shoot/profile-exists", "shoot/seed-exists", "shoot/project-exists", "landscape/namespace-misspelt"}, v.Rule)
}

// checkSecretKeys reports a Secret without the keys that the field mounts. Encryption leaves keys
// readable. Secrets without keys are filled by another party. Other rules check ConfigMaps.
func (c *checker) checkSecretKeys(field string, id identity) {
	if id.kind != kindSecret {
		return
	}
	object := c.findObject(id).Content().Object
	there := slices.Sorted(maps.Keys(mapAt(object, "data")))
	there = append(there, slices.Sorted(maps.Keys(mapAt(object, "stringData")))...)
	keys, _ := mountedKeysOfField(field)
	for _, key := range keys {
		if len(there) > 0 && !slices.Contains(there, key) {
			c.report(field, schemas.TypeInvalid, "%s has no key %q, which must exist; its keys are %s", objectPosition(c.findObject(id)), key, strings.Join(there, ", "))
		}
	}
}

// reportAnnotatedCluster reports a referenced object whose annotation selects a different cluster
// than the referring object's.
func (c *checker) reportAnnotatedCluster(r referenceField, field string, id identity) bool {
	said := textAt(c.findObject(id).Content().Object, "metadata", "annotations", clusterAnnotation)
	own := textAt(c.object(), "metadata", "annotations", clusterAnnotation)
	if own == "" {
		own = "virtual"
		if r.referrerKind == "Garden" || r.referrerKind == "Extension" {
			own = "runtime"
		}
	}
	if said != "runtime" && said != "virtual" || said == own {
		return false
	}
	c.report(field, schemas.TypeInvalid, "%s %s goes to the %s cluster by its annotation %s, but is read from the %s one; remove the annotation",
		id.kind.Kind, path.Join(id.namespace, id.name), said, clusterAnnotation, own)
	return true
}

// checkTargetCluster reports a reference from the virtual garden to an object in the runtime
// cluster. A declared object exists in only one cluster: in the runtime cluster if the Garden or an
// Extension refers to it.
func (c *checker) checkTargetCluster(r referenceField, field string, id identity) {
	if r.referrerKind == "Garden" || r.referrerKind == "Extension" || id.namespace != gardencorev1beta1.GardenNamespace || id.kind != kindSecret && id.kind != kindConfigMap {
		return
	}
	for _, kind := range []schema.GroupKind{kindGarden, kindOperatorExtension} {
		for _, in := range c.allOfKind(kind) {
			other := c.findObject(identityOf(in)).Content().Object
			names := false
			for _, of := range referenceFields() {
				if of.referrerKind == kind.Kind {
					visitValues(other, of.path, func(_ string, value any) { names = names || isReferenceTo(of, value, id) })
				}
			}
			if names && textAt(c.findObject(id).Content().Object, "metadata", "annotations", clusterAnnotation) == "" {
				c.report(field, schemas.TypeInvalid, "%s %s/%s goes to the runtime cluster, because %s refers to it; declare another one with another name for the virtual garden",
					id.kind.Kind, id.namespace, id.name, objectPosition(in))
				return
			}
		}
	}
}

// clusterAnnotation is controllers/landscape.AnnotationCluster.
const clusterAnnotation = "landscape.pergola.dev/cluster"

// isReferenceTo reports whether a reference in the runtime cluster names an object of namespace
// garden.
func isReferenceTo(r referenceField, value any, id identity) bool {
	switch v := value.(type) {
	case string:
		return r.targetKind == id.kind && v == id.name
	case map[string]any:
		kind := r.targetKind.Kind
		if said := textAt(v, "kind"); said != "" {
			kind = said
		}
		return kind == id.kind.Kind && textAt(v, "name") == id.name
	}
	return false
}

// canBeReferenced reports whether the kind is known and the namespace valid.
func canBeReferenced(id identity) bool {
	if id.namespace != "" && len(validation.IsDNS1123Label(id.namespace)) > 0 {
		return false
	}
	return slices.ContainsFunc(schemas.KnownKinds(), func(known schema.GroupVersionKind) bool { return known.GroupKind() == id.kind })
}

// isNamespaced reports whether a kind is known to be namespaced.
func (c *checker) isNamespaced(kind schema.GroupKind) bool {
	return slices.Contains([]schema.GroupKind{kindSecret, kindConfigMap, kindCredentialsBinding, kindWorkloadIdentity, coreKind("SecretBinding"), coreKind("InternalSecret"), coreKind("Quota"), kindShoot}, kind)
}

// resolveKind returns the kind that a reference names. Without a version, the expected kind or a
// declared kind of that name matches.
func (c *checker) resolveKind(kind, version string, meant schema.GroupKind) schema.GroupKind {
	if version != "" {
		return schema.FromAPIVersionAndKind(version, kind).GroupKind()
	}
	if kind == meant.Kind {
		return meant
	}
	if known := c.kindsNamed(kind); len(known) > 0 {
		return known[0]
	}
	return schema.GroupKind{Kind: kind}
}
