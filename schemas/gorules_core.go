package schemas

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// coreGoRules lists the Go rules of the smaller kinds of the garden, with the reason why each is
// not in CUE.
func coreGoRules() []goRule {
	rule := func(kind, name, title, doc, source string, check func(ruleInput) []finding) goRule {
		return goRule{Rule: Rule{ID: strings.ToLower(kind) + "/" + name, Kind: kind, Title: title, Doc: doc, Source: source,
			In: "go", Severity: SeverityError, Scope: scopeObject}, check: check}
	}
	const validation = "pkg/api/core/validation/"
	return []goRule{
		{Rule: Rule{ID: "any/frozen-while-deleted", Kind: "*", Title: "Nothing changes in the spec of an extension or its parts while they are being deleted",
			Doc:    "These are ControllerRegistrations, ControllerInstallations and the kinds of extensions.gardener.cloud. In Go, because CUE does not compare objects.",
			Source: validation + "controllerregistration.go, controllerinstallation.go, pkg/api/extensions/validation", Fields: []string{"spec"}, In: "go", Severity: SeverityError, Scope: scopeObject, Class: ClassChange}, check: frozenWhileDeleted},
		rule("ControllerDeployment", "values", "Templates in the values of a chart are references to its resources",
			"A template is {{ .resources.NAME.data.KEY }}, with a name of the list of resources. In Go, because values have any form and depth.", validation+"utils.go", deploymentValues).about("helm.values", "providerConfig"),
		rule("Extension", "values", "Templates in the values of a chart are references to its resources",
			"A template is {{ .resources.NAME.data.KEY }}, with a name of spec.deployment.resources. In Go, because values have any form and depth.", validation+"utils.go", extensionValues).about("spec.deployment.admission.values", "spec.deployment.extension.runtimeClusterValues", "spec.deployment.extension.values"),
		rule("ControllerRegistration", "selector", "The selector of seeds is a selector of labels",
			"In Go, because the API server's own function decides.", validation+"controllerregistration.go", func(in ruleInput) []finding {
				return selectorAt(in, "spec", "deployment", "seedSelector")
			}).about("spec.deployment.seedSelector"),
		rule("ExposureClass", "selector", "The selector of seeds is a selector of labels",
			"In Go, because the API server's own function decides.", validation+"exposureclass.go", func(in ruleInput) []finding {
				return selectorAt(in, "scheduling", "seedSelector")
			}).about("scheduling.seedSelector"),
		rule("ExposureClass", "stays", "Handler and scheduling of an ExposureClass never change",
			"Shoots were placed by them. Make another ExposureClass. In Go, because CUE does not compare objects.", validation+"exposureclass.go", func(in ruleInput) []finding {
				return unchanged(in, "handler", "scheduling")
			}).about("handler", "scheduling").change(),
		rule("SecretBinding", "stays", "What a SecretBinding binds never changes",
			"Shoots use these credentials. Make another binding. A provider can be set later where there was none. In Go, because CUE does not compare objects.", validation+"secretbinding.go", secretBindingStays).about("provider", "quotas", "secretRef").change(),
		rule("CredentialsBinding", "stays", "What a CredentialsBinding binds never changes",
			"Shoots use these credentials. Make another binding. In Go, because CUE does not compare objects.", "pkg/api/security/validation/credentialsbinding.go", func(in ruleInput) []finding {
				return unchanged(inNamespace(in), "credentialsRef", "quotas", "provider")
			}).about("credentialsRef", "provider", "quotas").change(),
		rule("InternalSecret", "data", "The keys of an InternalSecret can be file names, fit its type, and the values fit into 1 MiB",
			"Keys have letters, digits, '-', '_' and '.'. In Go, because CUE cannot count bytes of base64, and because no value may get into a message.", validation+"internalsecret.go", secretData).about("data"),
		rule("InternalSecret", "values-stay", "The values of an immutable InternalSecret never change",
			"Make another InternalSecret. In Go, because no value may get into a message.", validation+"internalsecret.go", immutableData).about("data").change(),
		rule("Quota", "amounts", "Limits of a Quota are not negative",
			"In Go, because CUE has no arithmetic on quantities.", validation+"quota.go", quotaAmounts).about("spec.metrics"),
		rule("Bastion", "addresses", "The key of a Bastion is a public key, and it is reached from ranges of addresses",
			"In Go, because keys are parsed. Upstream reports all ranges at spec.ingress.", "pkg/api/operations/validation/bastion.go", bastionForms).about("spec.ingress", "spec.sshPublicKey"),
		rule("NamespacedCloudProfile", "versions", "Versions of Kubernetes and of images are versions, with stages in their order",
			"As for a CloudProfile, but the list of versions may be empty. In Go, because versions and times are compared.", validation+"namespacedcloudprofile.go, utils.go", namespacedVersions).about("spec.kubernetes.versions", "spec.machineImages"),
		rule("NamespacedCloudProfile", "amounts", "Amounts of machine types and volumes are not negative",
			"In Go, because CUE has no arithmetic on quantities.", validation+"utils.go", profileAmounts).about("spec.machineTypes", "spec.volumeTypes"),
		rule("NamespacedCloudProfile", "ca-bundle", "The CA bundle is a certificate",
			"Nodes trust it. In Go, because certificates are parsed.", validation+"namespacedcloudprofile.go", profileCABundle).about("spec.caBundle"),
	}
}

// deletionBegan reports whether an object is being deleted.
func deletionBegan(object map[string]any) bool {
	value, _, _ := unstructured.NestedFieldNoCopy(object, "metadata", "deletionTimestamp")
	return value != nil
}

func frozenWhileDeleted(in ruleInput) []finding {
	frozen := Rule{Kind: kindExtensions}.appliesTo(in.kind.GVK) && in.kind.GVK.Kind != "Cluster" ||
		in.kind.GVK.Kind == "ControllerRegistration" || in.kind.GVK.Kind == "ControllerInstallation"
	if in.old == nil || !frozen || !deletionBegan(in.object) || reflect.DeepEqual(compact(in.object["spec"]), compact(in.old["spec"])) {
		return nil
	}
	r := &report{}
	r.add(tree{path: "spec"}, TypeForbidden, "must not change, because the object is being deleted")
	return r.findings
}

// compact removes values that the API server does not distinguish from unset fields.
func compact(value any) any {
	switch v := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for name, child := range v {
			if child = compact(child); child != nil {
				result[name] = child
			}
		}
		if len(result) > 0 {
			return result
		}
		return nil
	case []any:
		if len(v) == 0 {
			return nil
		}
		list := make([]any, len(v))
		for i := range v {
			list[i] = compact(v[i])
		}
		return list
	case string:
		if v == "" {
			return nil
		}
	}
	return value
}

// unchanged reports the fields that differ from the old object.
func unchanged(in ruleInput, fields ...string) []finding {
	r := &report{}
	if in.old == nil {
		return nil
	}
	for _, field := range fields {
		if !reflect.DeepEqual(compact(in.object[field]), compact(in.old[field])) {
			r.add(tree{path: field}, TypeInvalid, "must stay as it was: %s cannot be changed", field)
		}
	}
	return r.findings
}

func secretBindingStays(in ruleInput) []finding {
	fields := []string{"secretRef", "quotas"}
	if in.old["provider"] != nil {
		fields = append(fields, "provider")
	}
	return unchanged(inNamespace(in), fields...)
}

// inNamespace completes the references of a binding like the API: their namespace defaults to its
// own.
func inNamespace(in ruleInput) ruleInput {
	if in.old == nil {
		return in
	}
	in.object, in.old = runtime.DeepCopyJSON(in.object), runtime.DeepCopyJSON(in.old)
	for _, object := range []map[string]any{in.object, in.old} {
		namespace, _, _ := unstructured.NestedString(object, "metadata", "namespace")
		quotas, _ := object["quotas"].([]any)
		for _, ref := range append(quotas, object["credentialsRef"], object["secretRef"]) {
			if fields, ok := ref.(map[string]any); ok && (fields["namespace"] == nil || fields["namespace"] == "") {
				fields["namespace"] = namespace
			}
		}
	}
	return in
}

func selectorAt(in ruleInput, fields ...string) []finding {
	r := &report{}
	r.labelSelector(tree{value: in.object}.at(fields...))
	return r.findings
}

func quotaAmounts(in ruleInput) []finding {
	r, metrics := &report{}, tree{value: in.object}.at("spec", "metrics")
	for _, name := range metrics.keys() {
		r.amount(metrics.key(name), name)
	}
	return r.findings
}
