package across

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
	inOwn     = "own"    // namespace of the referring object
	inGarden  = "garden" // namespace garden
	clustered = ""       // cluster-scoped
	asWritten = "?"      // namespace field of the reference, else of the referrer
)

// reference is a field that names another object: a name, or a structure with a name and optionally
// kind, apiVersion and namespace.
type reference struct {
	of        string // kind of the referring object, as in rules
	path      string
	to        schema.GroupKind // default if the field has no kind
	namespace string
}

// references returns the reference fields of the API. Upstream: the reference protection of
// Gardens, Seeds, Shoots and ControllerDeployments (pkg/controller/reference) and the admission
// plugin ResourceReferenceManager.
func references() []reference {
	garden := func(path string, to schema.GroupKind) reference { return reference{"Garden", path, to, inGarden} }
	shoot := func(path string, to schema.GroupKind) reference { return reference{"Shoot", path, to, inOwn} }
	seed := func(path string) reference { return reference{"Seed", path, kindSecret, asWritten} }
	const kube, gapi, dashboard = "spec.virtualCluster.kubernetes.kubeAPIServer.", "spec.virtualCluster.gardener.gardenerAPIServer.", "spec.virtualCluster.gardener.gardenerDashboard."
	return []reference{
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
		{"Seed", "spec.resources[].resourceRef", kindSecret, inGarden},

		shoot("spec.credentialsBindingName", kindCredentialsBinding),
		shoot("spec.secretBindingName", core("SecretBinding")),
		{"Shoot", "spec.exposureClassName", kindExposureClass, clustered},
		shoot("spec.dns.providers[].credentialsRef", kindSecret),
		shoot("spec.dns.providers[].secretName", kindSecret),
		shoot("spec.kubernetes.kubeAPIServer.admissionPlugins[].kubeconfigSecretName", kindSecret),
		shoot("spec.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef", kindConfigMap),
		shoot("spec.kubernetes.kubeAPIServer.structuredAuthentication.configMapName", kindConfigMap),
		shoot("spec.kubernetes.kubeAPIServer.structuredAuthorization.configMapName", kindConfigMap),
		shoot("spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[].secretName", kindSecret),
		shoot("spec.provider.workers[].controlPlane.backup.credentialsRef", kindSecret),
		shoot("spec.resources[].resourceRef", kindSecret),

		{"SecretBinding", "secretRef", kindSecret, asWritten},
		{"SecretBinding", "quotas[]", core("Quota"), asWritten},
		{"CredentialsBinding", "credentialsRef", kindSecret, asWritten},
		{"CredentialsBinding", "quotas[]", core("Quota"), asWritten},
		{"NamespacedCloudProfile", "spec.parent", kindCloudProfile, clustered},
		{"BackupBucket", "spec.seedName", kindSeed, clustered},
		{"BackupBucket", "spec.credentialsRef", kindSecret, asWritten},
		{"BackupEntry", "spec.seedName", kindSeed, clustered},
		{"BackupEntry", "spec.bucketName", core("BackupBucket"), clustered},
		{"ControllerRegistration", "spec.deployment.deploymentRefs[]", core("ControllerDeployment"), clustered},
		{"ControllerDeployment", "resources[].resourceRef", kindSecret, inGarden},
		{"ControllerDeployment", "helm.ociRepository.pullSecretRef", kindSecret, inGarden},
		{"ControllerDeployment", "helm.ociRepository.caBundleSecretRef", kindSecret, inGarden},
		{"ControllerInstallation", "spec.registrationRef", kindRegistration, clustered},
		{"ControllerInstallation", "spec.deploymentRef", core("ControllerDeployment"), clustered},
		{"ControllerInstallation", "spec.seedRef", kindSeed, clustered},
		{"Extension", "spec.deployment.extension.helm.ociRepository.pullSecretRef", kindSecret, inGarden},
		{"Extension", "spec.deployment.extension.helm.ociRepository.caBundleSecretRef", kindSecret, inGarden},
		{"Extension", "spec.deployment.admission.runtimeCluster.helm.ociRepository.pullSecretRef", kindSecret, inGarden},
		{"Extension", "spec.deployment.admission.runtimeCluster.helm.ociRepository.caBundleSecretRef", kindSecret, inGarden},
		{"Extension", "spec.deployment.admission.virtualCluster.helm.ociRepository.pullSecretRef", kindSecret, inGarden},
		{"Extension", "spec.deployment.admission.virtualCluster.helm.ociRepository.caBundleSecretRef", kindSecret, inGarden},
		{"Extension", "spec.deployment.resources[].resourceRef", kindSecret, inGarden},
		{"Gardenlet", "spec.kubeconfigSecretRef", kindSecret, inOwn},
		{"Gardenlet", "spec.deployment.helm.ociRepository.pullSecretRef", kindSecret, inOwn},
		{"Gardenlet", "spec.deployment.helm.ociRepository.caBundleSecretRef", kindSecret, inOwn},
		{"ManagedSeed", "spec.shoot", kindShoot, inOwn},
		{"Bastion", "spec.shootRef", kindShoot, inOwn},
	}
}

// seedReferences checks the references in a gardenlet's template of its Seed.
func seedReferences(kind string) func(*check) {
	return func(c *check) {
		for _, r := range references() {
			if r.of != kindSeed.Kind {
				continue
			}
			r.path = strings.Join(templatesOfSeeds[kind], ".") + "." + r.path
			each(c.object(), r.path, func(path string, value any) { c.exists(r, path, value) })
		}
	}
}

// referenceRules returns one rule per kind, for all its references.
func referenceRules() []rule {
	byKind := map[string][]reference{}
	for _, r := range references() {
		byKind[r.of] = append(byKind[r.of], r)
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
			ID: strings.ToLower(kind) + "/references", Kind: kind, Language: "go", File: "schemas/across/references.go", Scope: "landscape", Severity: schemas.SeverityError, Class: schemas.ClassStatic, Fields: slices.Compact(fields),
			Title:  "What " + article(kind) + " refers to exists",
			Doc:    "The object is declared in the landscape. What is made by hand, by another tool or through the API is listed in landscape.yaml under spec.external.",
			Source: "plugin/pkg/global/resourcereferencemanager; pkg/gardenlet and pkg/operator wait for what is missing",
		}, func(c *check) {
			for _, r := range refs {
				each(c.object(), r.path, func(path string, value any) { c.exists(r, path, value) })
			}
		}})
	}
	return out
}

func article(kind string) string {
	if strings.ContainsAny(kind[:1], "AEIOU") {
		return "an " + kind
	}
	return "a " + kind
}

// target returns the object that the value of a reference names. The name is empty if the value has
// none. own is the namespace of the referring object.
func (r reference) target(value any, own string, kindOf func(kind, version string, meant schema.GroupKind) schema.GroupKind) identity {
	id := identity{kind: r.to}
	switch v := value.(type) {
	case string:
		id.name = v
	case map[string]any:
		id.name = text(v, "name")
		if kind := text(v, "kind"); kind != "" {
			id.kind = kindOf(kind, text(v, "apiVersion"), r.to)
		}
		if r.namespace == asWritten {
			id.namespace = text(v, "namespace")
		}
	}
	switch {
	case r.namespace == inGarden:
		id.namespace = gardencorev1beta1.GardenNamespace
	case r.namespace == inOwn, r.namespace == asWritten && id.namespace == "":
		id.namespace = own
	}
	return id
}

// exists reports a reference to a missing object.
func (c *check) exists(r reference, at string, value any) {
	id, field := r.target(value, c.namespace(), c.kindOf), at
	if _, isTable := value.(map[string]any); isTable {
		field = at + ".name"
	}
	if id.name == "" {
		return // the structure reports it
	}
	if id.namespace == "" && r.namespace != clustered && c.isNamespaced(id.kind) {
		return // the rules about the object itself report a missing namespace
	}
	if c.has(id) {
		if !c.inSaidCluster(r, field, id) {
			c.inItsCluster(r, field, id)
		}
		c.hasKeys(field, id)
		return
	}
	if c.isExternal(id) || !isReferable(id) {
		return // the rules about the object itself report invalid targets
	}
	where := ""
	if id.namespace != "" {
		where = fmt.Sprintf(" in namespace %s", id.namespace)
	}
	c.report(field, schemas.TypeInvalid, "there is no %s %q%s in this landscape%s; declare it, or list it in landscape.yaml under spec.external", id.kind.Kind, id.name, where, c.suggest(id))
}

// IsMissing reports whether a finding is about a missing object. If only part of the files is read,
// the object may be in another part.
func IsMissing(v schemas.Violation) bool {
	return strings.HasSuffix(v.Rule, "/references") || slices.Contains([]string{"shoot/profile-exists", "shoot/seed-exists", "shoot/project-exists", "landscape/namespace-misspelt"}, v.Rule)
}

// hasKeys reports a Secret without the keys that the field mounts. Encryption leaves keys
// readable. Secrets without keys are filled by another party. Other rules check ConfigMaps.
func (c *check) hasKeys(field string, id identity) {
	if id.kind != kindSecret {
		return
	}
	object := c.find(id).Content().Object
	there := slices.Sorted(maps.Keys(table(object, "data")))
	there = append(there, slices.Sorted(maps.Keys(table(object, "stringData")))...)
	keys, _ := fileOf(field)
	for _, key := range keys {
		if len(there) > 0 && !slices.Contains(there, key) {
			c.report(field, schemas.TypeInvalid, "%s has no key %q, which is read; its keys are %s", place(c.find(id)), key, strings.Join(there, ", "))
		}
	}
}

// inSaidCluster reports a referenced object whose annotation selects another cluster than the
// referring object's.
func (c *check) inSaidCluster(r reference, field string, id identity) bool {
	said := text(c.find(id).Content().Object, "metadata", "annotations", annotationCluster)
	own := text(c.object(), "metadata", "annotations", annotationCluster)
	if own == "" {
		own = "virtual"
		if r.of == "Garden" || r.of == "Extension" {
			own = "runtime"
		}
	}
	if said != "runtime" && said != "virtual" || said == own {
		return false
	}
	c.report(field, schemas.TypeInvalid, "%s %s is put into the %s cluster by its annotation %s, but looked for in the %s one; remove the annotation",
		id.kind.Kind, path.Join(id.namespace, id.name), said, annotationCluster, own)
	return true
}

// inItsCluster reports a reference from the virtual garden to an object in the runtime cluster. A
// declared object exists in one cluster only: in the runtime cluster if the Garden or an Extension
// refers to it.
func (c *check) inItsCluster(r reference, field string, id identity) {
	if r.of == "Garden" || r.of == "Extension" || id.namespace != gardencorev1beta1.GardenNamespace || id.kind != kindSecret && id.kind != kindConfigMap {
		return
	}
	for _, kind := range []schema.GroupKind{kindGarden, kindOperatorExtension} {
		for _, in := range c.all(kind) {
			other := c.find(identityOf(in)).Content().Object
			names := false
			for _, of := range references() {
				if of.of == kind.Kind {
					each(other, of.path, func(_ string, value any) { names = names || refersTo(of, value, id) })
				}
			}
			if names && text(c.find(id).Content().Object, "metadata", "annotations", annotationCluster) == "" {
				c.report(field, schemas.TypeInvalid, "%s %s/%s is put into the runtime cluster, because %s refers to it, and the virtual garden gets none of that name; declare one of its own, with another name",
					id.kind.Kind, id.namespace, id.name, place(in))
				return
			}
		}
	}
}

// annotationCluster is controllers/landscape.AnnotationCluster.
const annotationCluster = "landscape.pergola.dev/cluster"

// refersTo reports whether a reference in the runtime cluster names an object of namespace garden.
func refersTo(r reference, value any, id identity) bool {
	switch v := value.(type) {
	case string:
		return r.to == id.kind && v == id.name
	case map[string]any:
		kind := r.to.Kind
		if said := text(v, "kind"); said != "" {
			kind = said
		}
		return kind == id.kind.Kind && text(v, "name") == id.name
	}
	return false
}

// isReferable reports whether the kind is known and the namespace valid.
func isReferable(id identity) bool {
	if id.namespace != "" && len(validation.IsDNS1123Label(id.namespace)) > 0 {
		return false
	}
	return slices.ContainsFunc(schemas.KnownKinds(), func(known schema.GroupVersionKind) bool { return known.GroupKind() == id.kind })
}

// isNamespaced reports whether a kind is known to be namespaced.
func (c *check) isNamespaced(kind schema.GroupKind) bool {
	return slices.Contains([]schema.GroupKind{kindSecret, kindConfigMap, kindCredentialsBinding, kindWorkloadIdentity, core("SecretBinding"), core("InternalSecret"), core("Quota"), kindShoot}, kind)
}

// kindOf returns the kind that a reference names. Without a version, the expected kind or a
// declared kind of that name matches.
func (c *check) kindOf(kind, version string, meant schema.GroupKind) schema.GroupKind {
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
