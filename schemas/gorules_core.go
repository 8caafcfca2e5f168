// SPDX-License-Identifier: Apache-2.0

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
			Language: "go", Severity: SeverityError, Scope: scopeObject}, check: check}
	}
	const validation = "pkg/api/core/validation/"
	return []goRule{
		{Rule: Rule{ID: "any/frozen-while-deleted", Kind: "*", Title: "Nothing changes in the spec of an extension or its parts while they are being deleted",
			Doc:    "These are ControllerRegistrations, ControllerInstallations and the kinds of extensions.gardener.cloud. The rule is in Go because CUE does not compare objects.",
			Source: validation + "controllerregistration.go, controllerinstallation.go, pkg/api/extensions/validation", Fields: []string{"spec"}, Language: "go", Severity: SeverityError, Scope: scopeObject, Class: ClassChange}, check: checkFrozenDuringDeletion},
		rule("ControllerDeployment", "values", "Templates in the values of a chart are references to its resources",
			"A template is {{ .resources.NAME.data.KEY }}, with a name of the list of resources. The rule is in Go because values have any form and depth.", validation+"utils.go", checkDeploymentValues).withFields("helm.values", "providerConfig"),
		rule("Extension", "values", "Templates in the values of a chart are references to its resources",
			"A template is {{ .resources.NAME.data.KEY }}, with a name of spec.deployment.resources. The rule is in Go because values have any form and depth.", validation+"utils.go", checkExtensionValues).withFields("spec.deployment.admission.values", "spec.deployment.extension.runtimeClusterValues", "spec.deployment.extension.values"),
		rule("ControllerRegistration", "selector", "The seed selector is a label selector",
			"The rule is in Go because the API server's own function decides.", validation+"controllerregistration.go", func(in ruleInput) []finding {
				return checkSelectorAt(in, "spec", "deployment", "seedSelector")
			}).withFields("spec.deployment.seedSelector"),
		rule("ExposureClass", "selector", "The seed selector is a label selector",
			"The rule is in Go because the API server's own function decides.", validation+"exposureclass.go", func(in ruleInput) []finding {
				return checkSelectorAt(in, "scheduling", "seedSelector")
			}).withFields("scheduling.seedSelector"),
		rule("ExposureClass", "stays", "Handler and scheduling of an ExposureClass never change",
			"Shoots were placed by them. Create another ExposureClass. The rule is in Go because CUE does not compare objects.", validation+"exposureclass.go", func(in ruleInput) []finding {
				return checkUnchanged(in, "handler", "scheduling")
			}).withFields("handler", "scheduling").withChangeClass(),
		rule("SecretBinding", "stays", "The references of a SecretBinding never change",
			"Shoots use these credentials. Create another binding. A provider can be set later where there was none. The rule is in Go because CUE does not compare objects.", validation+"secretbinding.go", checkSecretBindingUpdate).withFields("provider", "quotas", "secretRef").withChangeClass(),
		rule("CredentialsBinding", "stays", "The references of a CredentialsBinding never change",
			"Shoots use these credentials. Create another binding. The rule is in Go because CUE does not compare objects.", "pkg/api/security/validation/credentialsbinding.go", func(in ruleInput) []finding {
				return checkUnchanged(withReferenceNamespaces(in), "credentialsRef", "quotas", "provider")
			}).withFields("credentialsRef", "provider", "quotas").withChangeClass(),
		rule("InternalSecret", "data", "The keys of an InternalSecret can be file names, fit its type, and the values fit into 1 MiB",
			"Keys have letters, digits, '-', '_' and '.'. The rule is in Go because CUE cannot count bytes of base64, and because no value may get into a message.", validation+"internalsecret.go", checkSecretData).withFields("data"),
		rule("InternalSecret", "values-stay", "The values of an immutable InternalSecret never change",
			"Create another InternalSecret. The rule is in Go because no value may get into a message.", validation+"internalsecret.go", checkInternalSecretUpdate).withFields("data").withChangeClass(),
		rule("Quota", "amounts", "Limits of a Quota are not negative",
			"The rule is in Go because CUE has no arithmetic on quantities.", validation+"quota.go", checkQuotaAmounts).withFields("spec.metrics"),
		rule("Bastion", "addresses", "A Bastion has a public key and ranges of source addresses",
			"The rule is in Go because keys are parsed. Upstream reports all ranges at spec.ingress.", "pkg/api/operations/validation/bastion.go", checkBastionForms).withFields("spec.ingress", "spec.sshPublicKey"),
		rule("NamespacedCloudProfile", "versions", "Versions of Kubernetes and images are valid, with stages in order",
			"The rule is that of a CloudProfile, but the list of versions may be empty. The rule is in Go because versions and times are compared.", validation+"namespacedcloudprofile.go, utils.go", checkNamespacedVersions).withFields("spec.kubernetes.versions", "spec.machineImages"),
		rule("NamespacedCloudProfile", "amounts", "Amounts of machine types and volumes are not negative",
			"The rule is in Go because CUE has no arithmetic on quantities.", validation+"utils.go", checkProfileAmounts).withFields("spec.machineTypes", "spec.volumeTypes"),
		rule("NamespacedCloudProfile", "ca-bundle", "The CA bundle is a certificate",
			"Nodes trust it. The rule is in Go because certificates are parsed.", validation+"namespacedcloudprofile.go", checkProfileCABundle).withFields("spec.caBundle"),
	}
}

// isBeingDeleted reports whether an object is being deleted.
func isBeingDeleted(object map[string]any) bool {
	value, _, _ := unstructured.NestedFieldNoCopy(object, "metadata", "deletionTimestamp")
	return value != nil
}

func checkFrozenDuringDeletion(in ruleInput) []finding {
	frozen := Rule{Kind: kindAllExtensions}.isForKind(in.kind.GVK) && in.kind.GVK.Kind != "Cluster" ||
		in.kind.GVK.Kind == "ControllerRegistration" || in.kind.GVK.Kind == "ControllerInstallation"
	if in.old == nil || !frozen || !isBeingDeleted(in.object) || reflect.DeepEqual(removeEmptyValues(in.object["spec"]), removeEmptyValues(in.old["spec"])) {
		return nil
	}
	r := &findingCollector{}
	r.add(fieldValue{path: "spec"}, TypeForbidden, "must not change, because the object is being deleted")
	return r.findings
}

// removeEmptyValues removes values that the API server does not distinguish from unset fields.
func removeEmptyValues(value any) any {
	switch v := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for name, child := range v {
			if child = removeEmptyValues(child); child != nil {
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
			list[i] = removeEmptyValues(v[i])
		}
		return list
	case string:
		if v == "" {
			return nil
		}
	}
	return value
}

// checkUnchanged reports the fields that differ from the old object.
func checkUnchanged(in ruleInput, fields ...string) []finding {
	r := &findingCollector{}
	if in.old == nil {
		return nil
	}
	for _, field := range fields {
		if !reflect.DeepEqual(removeEmptyValues(in.object[field]), removeEmptyValues(in.old[field])) {
			r.add(fieldValue{path: field}, TypeInvalid, "must stay as it was: %s cannot be changed", field)
		}
	}
	return r.findings
}

func checkSecretBindingUpdate(in ruleInput) []finding {
	fields := []string{"secretRef", "quotas"}
	if in.old["provider"] != nil {
		fields = append(fields, "provider")
	}
	return checkUnchanged(withReferenceNamespaces(in), fields...)
}

// withReferenceNamespaces completes the references of a binding like the API: their namespace
// defaults to its own.
func withReferenceNamespaces(in ruleInput) ruleInput {
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

func checkSelectorAt(in ruleInput, fields ...string) []finding {
	r := &findingCollector{}
	r.checkLabelSelector(fieldValue{value: in.object}.lookup(fields...))
	return r.findings
}

func checkQuotaAmounts(in ruleInput) []finding {
	r, metrics := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "metrics")
	for _, name := range metrics.keys() {
		r.checkResourceAmount(metrics.entry(name), name)
	}
	return r.findings
}
