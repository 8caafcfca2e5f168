// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/pergola-dev/pergola/internal/secretwords"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

const (
	dnsNameMessage       = "is not a DNS name: lower case letters, digits, '-' and '.', beginning and ending with a letter or digit"
	dnsLabelMessage      = "is not a DNS label: lower case letters, digits and '-', beginning and ending with a letter or digit, at most 63 characters"
	qualifiedNameMessage = "is not a qualified name: letters, digits, '-', '_' and '.', at most 63, no sign at either end, " +
		"optionally after a DNS name and a slash"
	labelValueMessage = "is not the value of a label: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit, at most 63 characters"
)

// checkMetadata checks the texts in metadata as the API server does for every kind. The structural
// check reports values that are not text.
func checkMetadata(in ruleInput) []finding {
	metadata, _ := in.object["metadata"].(map[string]any)
	var findings []finding
	// The API server reports labels, annotations and finalizers as a whole; the position is that of
	// the entry.
	add := func(path fieldpath.Path, typ ViolationType, format string, args ...any) {
		findings = append(findings, finding{path: path[:2].String(), documentPath: path.String(), typ: typ, message: fmt.Sprintf(format, args...)})
	}
	at := func(steps ...any) fieldpath.Path { return append(fieldpath.Path{"metadata"}, steps...) }

	if name, _ := metadata["name"].(string); name != "" {
		if words := nameProblem(in.kind.GVK.Group, in.kind.GVK.Kind, name); words != "" {
			add(at("name"), TypeInvalid, "%q %s", name, words)
		}
	}
	if namespace, _ := metadata["namespace"].(string); namespace != "" && len(utilvalidation.IsDNS1123Label(namespace)) > 0 {
		add(at("namespace"), TypeInvalid, "%q %s", namespace, dnsLabelMessage)
	}
	labels, _ := metadata["labels"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if len(utilvalidation.IsQualifiedName(key)) > 0 {
			add(at("labels", fieldpath.Key(key)), TypeInvalid, "the key %q %s", key, qualifiedNameMessage)
		} else if value, ok := labels[key].(string); ok && len(utilvalidation.IsValidLabelValue(value)) > 0 {
			add(at("labels", fieldpath.Key(key)), TypeInvalid, "the value %s of %s %s", printableLabelValue(key, value), key, labelValueMessage)
		}
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	size := 0
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value, _ := annotations[key].(string)
		size += len(key) + len(value)
		// Annotations may have upper case letters in the DNS name.
		if len(utilvalidation.IsQualifiedName(strings.ToLower(key))) > 0 {
			add(at("annotations", fieldpath.Key(key)), TypeInvalid, "the key %q %s", key, qualifiedNameMessage)
		}
	}
	if limit := validation.TotalAnnotationSizeLimitB; size > limit {
		add(at("annotations"), TypeTooLong, "have %d bytes together, but may have at most %d", size, limit)
	}
	finalizers, _ := metadata["finalizers"].([]any)
	opposite := map[string]string{metav1.FinalizerOrphanDependents: metav1.FinalizerDeleteDependents, metav1.FinalizerDeleteDependents: metav1.FinalizerOrphanDependents}
	for i, item := range finalizers {
		name, _ := item.(string)
		if other := opposite[name]; other != "" && slices.Contains(finalizers[:i], any(other)) {
			add(at("finalizers", i), TypeInvalid, "%q contradicts %q: dependents either stay or are deleted first; remove one of the two", name, other)
		}
		if name != "" && len(utilvalidation.IsQualifiedName(name)) > 0 {
			add(at("finalizers", i), TypeInvalid, "%q %s", name, qualifiedNameMessage)
		}
	}
	controller := ""
	for i, owner := range (fieldValue{value: in.object}).lookup("metadata", "ownerReferences").items() {
		name := owner.lookup("kind").text() + "/" + owner.lookup("name").text()
		text := owner.lookup("apiVersion").text()
		version, err := schema.ParseGroupVersion(text)
		if _, banned := validation.BannedOwners[version.WithKind(owner.lookup("kind").text())]; banned {
			add(at("ownerReferences", i, "kind"), TypeInvalid, "an object of this kind cannot own others")
		} else if err != nil || text != "" && version.Version == "" {
			add(at("ownerReferences", i, "apiVersion"), TypeInvalid, "%q does not have the form VERSION or GROUP/VERSION", text)
		}
		switch {
		case !owner.lookup("controller").isTrue():
		case controller != "":
			add(at("ownerReferences", i, "controller"), TypeInvalid, "only one owner can be the controller, but %s is already; remove the field of %s or of the other", controller, name)
		default:
			controller = name
		}
	}
	return findings
}

// printableLabelValue returns the value of a label in quotes, unless its key indicates a secret.
func printableLabelValue(key, value string) string {
	if secretwords.HasSecretWord(key) {
		return "(not shown)"
	}
	return fmt.Sprintf("%q", value)
}

// dnsLabelNamedKinds lists upstream's kinds, by group, whose names are DNS labels. Seeds, Shoots
// and Projects have their own rules.
var dnsLabelNamedKinds = map[string][]string{
	"core.gardener.cloud":           {"BackupBucket", "ControllerDeployment", "ControllerInstallation", "ControllerRegistration", "ExposureClass", "ShootState"},
	"operations.gardener.cloud":     {"Bastion"},
	"seedmanagement.gardener.cloud": {"Gardenlet", "ManagedSeed"},
}

// nameProblem describes why the API server refuses a name, or returns "". The structural check
// reports names that are too long for any kind.
func nameProblem(group, kind, name string) string {
	switch {
	case len(name) > utilvalidation.DNS1123SubdomainMaxLength:
	case group == "" && kind == "Namespace" || slices.Contains(dnsLabelNamedKinds[group], kind):
		if len(utilvalidation.IsDNS1123Label(name)) > 0 {
			return dnsLabelMessage
		}
	case group == "rbac.authorization.k8s.io" || group == "core.gardener.cloud" && kind == "BackupEntry":
		if problems := content.IsPathSegmentName(name); len(problems) > 0 {
			return "is not a name: it " + problems[0]
		}
	case len(utilvalidation.IsDNS1123Subdomain(name)) > 0:
		return dnsNameMessage
	}
	return ""
}
