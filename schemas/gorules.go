// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// ruleInput is everything that a rule may read.
type ruleInput struct {
	kind      *structure.Kind
	object    map[string]any
	old       map[string]any
	landscape *landscapeIndex
}

// goRule is a rule that CUE cannot express, or not readably.
type goRule struct {
	Rule
	check func(ruleInput) []finding
}

// RuleDeletionConfirm is the rule that an object is removed only after its deletion was confirmed.
// Callers that hold such removals in the cluster need not reject the files.
const RuleDeletionConfirm = "any/deletion-confirmed"

const (
	ruleEmptyValue       = "structure/empty-value"
	ruleExtensionConfig  = "structure/extension-config"
	ruleRepeatedItems    = "any/repeated-items"
	ruleSpaces           = "any/spaces"
	ruleGardenNamespace  = "namespace/garden-kept"
	annotationConfirm    = "confirmation.gardener.cloud/deletion"
	sourceDeletion       = "plugin/pkg/global/deletionconfirmation, pkg/operator/webhook, pkg/resourcemanager/webhook/crddeletionprotection"
	sourceGardenNetworks = "pkg/api/operator/v1alpha1/validation/garden.go"
)

// withChangeClass marks a rule that reads the object before the change.
func (r goRule) withChangeClass() goRule {
	r.Class = ClassChange
	return r
}

// withFields sets the fields that the rule is about.
func (r goRule) withFields(fields ...string) goRule {
	r.Fields = fields
	return r
}

// cachedGoRules returns the Go rules, made once because every object is checked against them.
var cachedGoRules = sync.OnceValue(goRules)

// goRules lists the rules in Go, with the reason why each is not in CUE.
func goRules() []goRule {
	return slices.Concat(
		withSourceFile("gorules.go", anyGoRules()), withSourceFile("gorules_garden.go", gardenGoRules()), withSourceFile("gorules_seed.go", seedGoRules()),
		withSourceFile("gorules_shoot.go", shootGoRules()), withSourceFile("gorules_project.go", projectGoRules()), withSourceFile("gorules_cloudprofile.go", cloudProfileGoRules()),
		withSourceFile("gorules_core.go", coreGoRules()), withSourceFile("gorules_seedmanagement.go", seedManagementGoRules()),
		withSourceFile("gorules_extensions.go", extensionsGoRules()), withSourceFile("gorules_landscape.go", landscapeGoRules()), withSourceFile("gorules_effect.go", ineffectiveValueGoRules()), withSourceFile("gorules_requests.go", requestGoRules()), withSourceFile("gorules_plausible.go", plausibilityGoRules()), withSourceFile("gorules_kubernetes.go", kubernetesGoRules()), withSourceFile("listkeys.go", listKeyRules()),
	)
}

// withSourceFile records the file of this package that lists the rules.
func withSourceFile(file string, rules []goRule) []goRule {
	for i := range rules {
		rules[i].File = "schemas/" + file
	}
	return rules
}

// anyGoRules lists the rules about all kinds and about the kinds of Kubernetes.
func anyGoRules() []goRule {
	return []goRule{
		{Rule: Rule{ID: "any/metadata", Kind: "*", Title: "Names, labels, annotations, finalizers and owners have the form that the API server requires",
			Doc:    "A namespace is a DNS label, and all other names are DNS names. Keys of labels and annotations are qualified names; one owner is the controller. The rule is in Go because the API server's own functions decide, also for kinds without a schema.",
			Source: "k8s.io/apimachinery/pkg/api/validation, ValidateObjectMeta", Fields: []string{"metadata"}, Language: "go", Severity: SeverityError, Scope: scopeObject}, check: checkMetadata},
		{Rule: Rule{ID: "secret/data", Kind: "Secret", Title: "The keys of a Secret can be file names, fit its type, and the values fit into 1 MiB",
			Doc:    "Keys have letters, digits, '-', '_' and '.'. The rule is in Go because CUE cannot count bytes of base64, and because no value may get into a message.",
			Source: "k8s.io/kubernetes/pkg/apis/core/validation, ValidateSecret", Fields: []string{"data", "stringData"}, Language: "go", Severity: SeverityError, Scope: scopeObject}, check: checkSecretData},
		{Rule: Rule{ID: "secret/stays", Kind: "Secret", Title: "The type of a Secret never changes, nor the values of one that is immutable",
			Doc:    "Create another Secret. The rule is in Go because no value may get into a message.",
			Source: "k8s.io/kubernetes/pkg/apis/core/validation, ValidateSecretUpdate", Fields: []string{"data", "immutable", "type"}, Language: "go", Severity: SeverityError, Scope: scopeObject, Class: ClassChange}, check: checkSecretUpdate},
		{Rule: Rule{ID: "configmap/stays", Kind: "ConfigMap", Title: "The values of an immutable ConfigMap never change",
			Doc:    "Create another ConfigMap. The rule is in Go because CUE does not compare objects.",
			Source: "k8s.io/kubernetes/pkg/apis/core/validation, ValidateConfigMapUpdate", Fields: []string{"binaryData", "data", "immutable"}, Language: "go", Severity: SeverityError, Scope: scopeObject, Class: ClassChange}, check: checkConfigMapUpdate},
		{Rule: Rule{ID: "configmap/data", Kind: "ConfigMap", Title: "The keys of a ConfigMap can be file names, are given once, and the values fit into 1 MiB",
			Doc:    "Keys have letters, digits, '-', '_' and '.'; no key is in data and in binaryData. The rule is in Go because CUE cannot count bytes of base64.",
			Source: "k8s.io/kubernetes/pkg/apis/core/validation, ValidateConfigMap", Fields: []string{"binaryData", "data"}, Language: "go", Severity: SeverityError, Scope: scopeObject}, check: checkConfigMapData},
	}
}

// unlistedRules describes findings that no rule of the list makes.
func unlistedRules() []Rule {
	return []Rule{
		{ID: RuleStructure, Kind: "*", Title: "Fields, types, formats and required fields match the schema of the kind",
			Doc:    "An unknown field is Forbidden, with a hint at the intended field or its place; a wrong type is TypeInvalid. Objects in fields without a schema (GardenletConfiguration) and in ConfigMaps (such as audit policies) are checked against the schema of their type. A field that their reader ignores is a warning.",
			Source: "api/crds", Fields: []string{""}, Language: "base", Severity: SeverityError, Scope: scopeObject},
		{ID: ruleEmptyValue, Kind: "*", Title: "A field has a value",
			Doc:    "A field without a value is null, which the API server drops. Write {} for an object without fields. The rule is in Go because rules do not see such fields.",
			Source: "structural schemas of Kubernetes", Fields: []string{""}, Language: "go", File: "schemas/gorules.go", Severity: SeverityWarning, Scope: scopeObject},
		{ID: ruleExtensionConfig, Kind: "*", Title: "The configuration of an extension has a known apiVersion and kind, and their fields",
			Doc:    "Only misspelt names and values of another form are reported, because extensions are released separately and a later version may accept more. The rule is in Go because the schemas are data.",
			Source: "pkg/apis of github.com/gardener/gardener-extension-*, November 2026", Fields: []string{""}, Language: "go", File: "schemas/gorules.go", Severity: SeverityWarning, Scope: scopeObject},
		{ID: RuleDeletionConfirm, Kind: "*", Title: "A Garden, Seed, Shoot, Project, ShootState, Etcd or extension object is removed only after its deletion was confirmed",
			Doc:    "Set the annotation " + annotationConfirm + `: "true" in one commit, and remove the object in the next. A landscape holds the removal of a Garden, Seed, Shoot or Project, confirmed or not, and applies the rest: pergola validate --from warns of it. The rule is in Go because the object no longer exists.`,
			Source: sourceDeletion, Fields: []string{"metadata.annotations[confirmation.gardener.cloud/deletion]"}, Language: "go", File: "schemas/gorules.go", Severity: SeverityError, Scope: scopeObject, Class: ClassChange},
		{ID: ruleGardenNamespace, Kind: "Namespace", Title: "Namespace garden stays while a Garden exists",
			Doc:    "It holds the whole garden. Remove the Garden first. The rule is in Go because the object no longer exists.",
			Source: "pkg/operator/webhook/validation/namespacedeletion", Fields: []string{"metadata.name"}, Language: "go", File: "schemas/gorules.go", Severity: SeverityError, Scope: scopeLandscape, Class: ClassChange},
	}
}

func checkGoRules(in ruleInput) []finding {
	var findings []finding
	for _, rule := range cachedGoRules() {
		if rule.isForKind(in.kind.GVK) {
			findings = append(findings, rule.findings(in)...)
		}
	}
	return findings
}

func (r goRule) findings(in ruleInput) []finding {
	findings := r.check(in)
	for i := range findings {
		findings[i].rule, findings[i].severity = r.ID, r.Severity
	}
	return findings
}

// checkUnknownKind checks the metadata of an object without a schema.
func checkUnknownKind(object *unstructured.Unstructured) []finding {
	kind := structure.MetadataOnlyKind(object.GroupVersionKind())
	clean, empty := kind.Normalise(object.Object)
	findings := append(emptyValueFindings(empty), structuralFindings(kind, clean)...)
	for _, rule := range cachedGoRules() {
		if rule.Kind == "*" {
			findings = append(findings, dropFollowUps(rule.findings(ruleInput{kind: kind, object: clean}), findings)...)
		}
	}
	return dropDuplicateFindings(findings)
}

// protectedKinds lists the kinds, by group, whose deletion needs a confirmation. Seeds are our
// addition: upstream deletes a Seed once it has no Shoots.
var protectedKinds = map[string][]string{
	"core.gardener.cloud":     {"Project", "Seed", "Shoot", "ShootState"},
	"operator.gardener.cloud": {"Garden"},
	"druid.gardener.cloud":    {"Etcd"},
	"extensions.gardener.cloud": {"BackupBucket", "BackupEntry", "ContainerRuntime", "ControlPlane", "DNSRecord", "Extension", "Infrastructure",
		"Network", "OperatingSystemConfig", "SelfHostedShootExposure", "Worker"},
}

// isConfirmedDeletion reports whether a value confirms a deletion, parsed as upstream does.
func isConfirmedDeletion(value string) bool {
	confirmed, err := strconv.ParseBool(value)
	return err == nil && confirmed
}

// checkDeletion rejects the removal of a protected object whose previous revision does not confirm
// it.
func checkDeletion(old *unstructured.Unstructured, landscape *landscapeIndex) []finding {
	gvk := old.GroupVersionKind()
	if gvk.Group == "" && gvk.Kind == "Namespace" && old.GetName() == "garden" && landscape != nil && len(landscape.kinds["Garden"].inputs) > 0 {
		return []finding{{path: "metadata.name", typ: TypeForbidden, rule: ruleGardenNamespace, severity: SeverityError,
			message: "namespace garden must not be removed while a Garden exists; remove the Garden first"}}
	}
	if !slices.Contains(protectedKinds[gvk.Group], gvk.Kind) || isConfirmedDeletion(old.GetAnnotations()[annotationConfirm]) {
		return nil
	}
	return []finding{{
		path: "metadata.annotations[" + annotationConfirm + "]", typ: TypeForbidden, rule: RuleDeletionConfirm, severity: SeverityError,
		message: "the object is removed without confirmation; first set this annotation to \"true\", then remove the object (in Git: in the next commit)",
	}}
}
