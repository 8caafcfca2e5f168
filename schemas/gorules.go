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
	landscape *surroundings
}

// goRule is a rule that CUE cannot express, or not readably.
type goRule struct {
	Rule
	check func(ruleInput) []finding
}

// RuleDeletionConfirm is the rule that an object is removed after its deletion was confirmed.
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

// change marks a rule that reads the object before the change.
func (r goRule) change() goRule {
	r.Class = ClassChange
	return r
}

// about sets the fields that the rule is about.
func (r goRule) about(fields ...string) goRule {
	r.Fields = fields
	return r
}

// listedGoRules returns the Go rules, made once because every object is checked against them.
var listedGoRules = sync.OnceValue(goRules)

// goRules lists the rules in Go, with the reason why each is not in CUE.
func goRules() []goRule {
	return slices.Concat(
		in("gorules.go", anyGoRules()), in("gorules_garden.go", gardenGoRules()), in("gorules_seed.go", seedGoRules()),
		in("gorules_shoot.go", shootGoRules()), in("gorules_project.go", projectGoRules()), in("gorules_cloudprofile.go", cloudProfileGoRules()),
		in("gorules_core.go", coreGoRules()), in("gorules_seedmanagement.go", seedManagementGoRules()),
		in("gorules_extensions.go", extensionsGoRules()), in("gorules_landscape.go", landscapeGoRules()), in("gorules_effect.go", effectGoRules()), in("gorules_requests.go", requestGoRules()), in("gorules_plausible.go", plausibleGoRules()), in("gorules_kubernetes.go", kubernetesGoRules()), in("listkeys.go", listKeyRules()),
	)
}

// in records the file of this package that lists the rules.
func in(file string, rules []goRule) []goRule {
	for i := range rules {
		rules[i].File = "schemas/" + file
	}
	return rules
}

// anyGoRules lists the rules about all kinds and about the kinds of Kubernetes.
func anyGoRules() []goRule {
	return []goRule{
		{Rule: Rule{ID: "any/metadata", Kind: "*", Title: "Names, labels, annotations, finalizers and owners have the form that the API server asks for",
			Doc:    "A namespace is a DNS label, all other names are DNS names; keys of labels and annotations are qualified names; one owner is the controller. In Go, because the API server's own functions decide, also for kinds without a schema.",
			Source: "k8s.io/apimachinery/pkg/api/validation, ValidateObjectMeta", Fields: []string{"metadata"}, In: "go", Severity: SeverityError, Scope: scopeObject}, check: metadataForms},
		{Rule: Rule{ID: "secret/data", Kind: "Secret", Title: "The keys of a Secret can be file names, fit its type, and the values fit into 1 MiB",
			Doc:    "Keys have letters, digits, '-', '_' and '.'. In Go, because CUE cannot count bytes of base64, and because no value may get into a message.",
			Source: "k8s.io/kubernetes/pkg/apis/core/validation, ValidateSecret", Fields: []string{"data", "stringData"}, In: "go", Severity: SeverityError, Scope: scopeObject}, check: secretData},
		{Rule: Rule{ID: "secret/stays", Kind: "Secret", Title: "The type of a Secret never changes, nor the values of one that is immutable",
			Doc:    "Make another Secret. In Go, because no value may get into a message.",
			Source: "k8s.io/kubernetes/pkg/apis/core/validation, ValidateSecretUpdate", Fields: []string{"data", "immutable", "type"}, In: "go", Severity: SeverityError, Scope: scopeObject, Class: ClassChange}, check: secretStays},
		{Rule: Rule{ID: "configmap/stays", Kind: "ConfigMap", Title: "The values of an immutable ConfigMap never change",
			Doc:    "Make another ConfigMap. In Go, because CUE does not compare objects.",
			Source: "k8s.io/kubernetes/pkg/apis/core/validation, ValidateConfigMapUpdate", Fields: []string{"binaryData", "data", "immutable"}, In: "go", Severity: SeverityError, Scope: scopeObject, Class: ClassChange}, check: configMapStays},
		{Rule: Rule{ID: "configmap/data", Kind: "ConfigMap", Title: "The keys of a ConfigMap can be file names, are given once, and the values fit into 1 MiB",
			Doc:    "Keys have letters, digits, '-', '_' and '.'; no key is in data and in binaryData. In Go, because CUE cannot count bytes of base64.",
			Source: "k8s.io/kubernetes/pkg/apis/core/validation, ValidateConfigMap", Fields: []string{"binaryData", "data"}, In: "go", Severity: SeverityError, Scope: scopeObject}, check: configMapData},
	}
}

// checksOutsideTheList describes findings that no rule of the list makes.
func checksOutsideTheList() []Rule {
	return []Rule{
		{ID: RuleStructure, Kind: "*", Title: "Fields, types, formats and required fields hold the schema of the kind",
			Doc:    "An unknown field is Forbidden, with a hint at the field that was meant, or at the place to which it belongs; a wrong type is TypeInvalid. Objects in fields without a schema (GardenletConfiguration) and in ConfigMaps (audit policies, structured authentication and authorization) are walked by the schema of their type; a field that their process drops is a warning.",
			Source: "api/crds", Fields: []string{""}, In: "base", Severity: SeverityError, Scope: scopeObject},
		{ID: ruleEmptyValue, Kind: "*", Title: "A field has a value",
			Doc:    "A field without a value is null, which the API server drops. Write {} for an object without fields. In Go, because rules do not see such fields.",
			Source: "structural schemas of Kubernetes", Fields: []string{""}, In: "go", File: "schemas/gorules.go", Severity: SeverityWarning, Scope: scopeObject},
		{ID: ruleExtensionConfig, Kind: "*", Title: "The configuration of an extension has an apiVersion and kind that are known, and their fields",
			Doc:    "Only a name that is nearly a known one is reported, and a value of another form: an extension is released apart from Pergola, and a later version of it may take more. In Go, because the schemas are data.",
			Source: "pkg/apis of github.com/gardener/gardener-extension-*, November 2026", Fields: []string{""}, In: "go", File: "schemas/gorules.go", Severity: SeverityWarning, Scope: scopeObject},
		{ID: RuleDeletionConfirm, Kind: "*", Title: "A Garden, Seed, Shoot, Project, ShootState, Etcd or extension object is removed after its deletion was confirmed",
			Doc:    "Set the annotation " + annotationConfirm + `: "true" in one commit, and remove the object in the next. A landscape holds the removal of a Garden, Seed, Shoot or Project, confirmed or not, and applies the rest: pergola validate --from warns of it. In Go, because the object does not exist any more.`,
			Source: sourceDeletion, Fields: []string{"metadata.annotations[confirmation.gardener.cloud/deletion]"}, In: "go", File: "schemas/gorules.go", Severity: SeverityError, Scope: scopeObject, Class: ClassChange},
		{ID: ruleGardenNamespace, Kind: "Namespace", Title: "Namespace garden stays as long as there is a Garden",
			Doc:    "All of the garden is in it. Remove the Garden first. In Go, because the object does not exist any more.",
			Source: "pkg/operator/webhook/validation/namespacedeletion", Fields: []string{"metadata.name"}, In: "go", File: "schemas/gorules.go", Severity: SeverityError, Scope: scopeLandscape, Class: ClassChange},
	}
}

func checkGoRules(in ruleInput) []finding {
	var findings []finding
	for _, rule := range listedGoRules() {
		if rule.appliesTo(in.kind.GVK) {
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

// checkForeign checks the metadata of an object without a schema.
func checkForeign(object *unstructured.Unstructured) []finding {
	kind := structure.Foreign(object.GroupVersionKind())
	clean, empty := kind.Normalise(object.Object)
	findings := append(emptyValues(empty), structural(kind, clean)...)
	for _, rule := range listedGoRules() {
		if rule.Kind == "*" {
			findings = append(findings, withoutFollowUps(rule.findings(ruleInput{kind: kind, object: clean}), findings)...)
		}
	}
	return dedupe(findings)
}

// protected lists the kinds, by group, whose deletion needs a confirmation. Seeds are our addition:
// upstream deletes a Seed once it has no Shoots.
var protected = map[string][]string{
	"core.gardener.cloud":     {"Project", "Seed", "Shoot", "ShootState"},
	"operator.gardener.cloud": {"Garden"},
	"druid.gardener.cloud":    {"Etcd"},
	"extensions.gardener.cloud": {"BackupBucket", "BackupEntry", "ContainerRuntime", "ControlPlane", "DNSRecord", "Extension", "Infrastructure",
		"Network", "OperatingSystemConfig", "SelfHostedShootExposure", "Worker"},
}

// isConfirmed reports whether a value confirms a deletion, parsed as upstream does.
func isConfirmed(value string) bool {
	confirmed, err := strconv.ParseBool(value)
	return err == nil && confirmed
}

// checkDeletion rejects the removal of a protected object whose previous revision does not confirm
// it.
func checkDeletion(old *unstructured.Unstructured, landscape *surroundings) []finding {
	gvk := old.GroupVersionKind()
	if gvk.Group == "" && gvk.Kind == "Namespace" && old.GetName() == "garden" && landscape != nil && len(landscape.kinds["Garden"].inputs) > 0 {
		return []finding{{path: "metadata.name", typ: TypeForbidden, rule: ruleGardenNamespace, severity: SeverityError,
			message: "namespace garden must not be removed, because there is a Garden; remove the Garden first"}}
	}
	if !slices.Contains(protected[gvk.Group], gvk.Kind) || isConfirmed(old.GetAnnotations()[annotationConfirm]) {
		return nil
	}
	return []finding{{
		path: "metadata.annotations[" + annotationConfirm + "]", typ: TypeForbidden, rule: RuleDeletionConfirm, severity: SeverityError,
		message: "the object is removed without its confirmation; set this annotation to \"true\" first, and remove the object then (in Git: in the next commit)",
	}}
}
