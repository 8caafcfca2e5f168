// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// newGoWarning returns a warning about a value that the API accepts.
func newGoWarning(kind, name, title, doc, source string, check func(ruleInput) []finding) goRule {
	prefix := strings.ToLower(kind)
	if kind == "*" {
		prefix = "any"
	}
	return goRule{Rule: Rule{ID: prefix + "/" + name, Kind: kind, Title: title, Doc: doc, Source: source,
		Language: "go", Severity: SeverityWarning, Scope: scopeObject}, check: check}
}

// ineffectiveValueGoRules lists warnings about values that the API accepts, but that have no effect
// or an unwanted one.
func ineffectiveValueGoRules() []goRule {
	return []goRule{
		newGoWarning("*", "amounts", "Amounts of cores, memory and volumes are plausible for machines",
			"The suffix m stands for thousandths, and M and Gi stand for many. So 512m of memory is half a byte, and 500M of cpu are 500 million cores. The rule is in Go because CUE has no arithmetic on quantities.",
			"ours", checkAmounts).withFields(""),
		newGoWarning("*", "spaces", "Values neither begin nor end with a space",
			"Values are compared and looked up as they are written, with their spaces. The rule is in Go because it is about every text of an object.",
			"ours", checkOuterSpaces).withFields(""),
		newGoWarning("*", "repeated-items", "An item of a list has a value and is listed once",
			"A repeated or empty item of a list is most likely a mistake. The rule is in Go because it is about every list of an object.",
			"ours", checkRepeatedItems).withFields(""),
		newGoWarning("*", "empty-values", "A text of a Gardener object is not empty",
			"An empty text is most likely a forgotten value; fill it in, or leave the field out. The rule is in Go because it is about every text of an object.",
			"ours", checkEmptyGardenerTexts).withFields(""),
		newGoWarning("*", "annotation-names", "Annotations of Gardener have a name that Gardener reads",
			"A misspelt name has no effect. The rule is in Go because the message names the intended one.",
			"ours", checkAnnotationNames).withFields("metadata.annotations"),
		newGoWarning("Secret", "known-type", "The type of a Secret is not misspelt",
			"A misspelt type has no checks, and readers of the intended type do not find the Secret. The rule is in Go because the message names the intended type.",
			"k8s.io/api/core/v1, SecretType", checkSecretType).withFields("type"),
		newGoWarning("Secret", "key-pair", "A Secret for TLS has a certificate and its key",
			"Servers do not start with another key. The rule is in Go because certificates are parsed, and because no value may get into a message.",
			"crypto/tls, X509KeyPair", checkSecretKeyPair).withFields("data", "stringData"),
		newGoWarning("Shoot", "schedules-due", "Hibernation schedules have a date that exists",
			"A schedule for the 31st of February never does. The rule is in Go because CUE has no calendar.",
			"github.com/robfig/cron", checkSchedulesDue).withFields("spec.hibernation.schedules"),
		newGoWarning("Garden", "gardener-admission-ignored", "Configurations of admission plugins of gardener-apiserver have fields that the plugin reads",
			"The plugin ignores an unknown field. The rule is in Go because plugins of kube-apiserver share the table.",
			"plugin/pkg/shoot/*/apis", checkIgnoredGardenerAdmissionConfigs).withFields("spec.virtualCluster.gardener.gardenerAPIServer.admissionPlugins.config"),
		newGoWarning("Seed", "domains-apart", "The domain for Shoots differs from the internal domain",
			"Both records of a Shoot's API server would have one name. The rule is in Go because items of a list are compared with another field.",
			"pkg/gardenlet/operation/botanist/dnsrecord.go", checkSeedDomains).withFields("spec.dns"),
		newGoWarning("Seed", "reserved-resources", "Reserved capacity consists of resources that nodes have",
			"With another name, the pods that reserve capacity are rejected. The rule is in Go because the message names the intended one.",
			"k8s.io/kubernetes/pkg/apis/core/helper, IsStandardContainerResourceName", checkReservedResources).withFields("spec.settings.excessCapacityReservation.configs.resources"),
	}
}

// sizeFields lists fields for amounts of memory or of a volume, besides fields named after a
// resource.
var sizeFields = []string{"capacity", "containerLogMaxSize", "ephemeralStorage", "imageFSAvailable", "memoryAvailable", "minimumSize", "nodeFSAvailable", "volumeSize"}

// freeFormFields lists fields whose content extensions, charts or others define.
var freeFormFields = []string{"controlPlaneConfig", "infrastructureConfig", "metadata", "providerConfig", "status", "values"}

func checkAmounts(in ruleInput) []finding {
	if in.kind.GVK.Group == "" {
		return nil // a Secret or ConfigMap has fields of any meaning
	}
	r := &findingCollector{}
	var walk func(t fieldValue, ofPod bool)
	walk = func(t fieldValue, ofPod bool) {
		switch t.value.(type) {
		case map[string]any:
			for _, name := range t.keys() {
				resource := name
				if slices.Contains(sizeFields, name) {
					resource = string(corev1.ResourceMemory)
				}
				field := t.lookup(name)
				if slices.Contains(freeFormFields, name) {
					continue
				}
				if quantity, ok := field.quantity(); ok {
					wrong := structure.CheckAmount(resource, quantity)
					if wrong == "" && ofPod {
						wrong = structure.CheckPodAmount(resource, quantity)
					}
					if wrong != "" {
						r.add(field, TypeInvalid, "%v %s", field.value, wrong)
					}
					continue
				}
				walk(field, slices.Contains(podResourceFields, name))
			}
		case []any:
			for _, item := range t.items() {
				walk(item, false)
			}
		}
	}
	walk(fieldValue{value: in.object}, false)
	return r.findings
}

// podResourceFields lists fields for the resources of one pod.
var podResourceFields = []string{"maxAllowed", "minAllowed"}

func checkOuterSpaces(in ruleInput) []finding { return findOuterSpaces(fieldValue{value: in.object}) }

// dataContentFields lists fields of a Secret or ConfigMap for content of any form.
var dataContentFields = []string{"binaryData", "data", "stringData"}

func findOuterSpaces(root fieldValue) []finding {
	r := &findingCollector{}
	var walk func(fieldValue)
	walk = func(t fieldValue) {
		switch value := t.value.(type) {
		case map[string]any:
			for _, name := range t.keys() {
				if !slices.Contains(dataContentFields, name) {
					walk(t.lookup(name))
				}
			}
		case []any:
			for _, item := range t.items() {
				walk(item)
			}
		case string:
			if strings.TrimSpace(value) != value && !strings.Contains(value, "\n") {
				r.add(t, TypeInvalid, "begins or ends with a space, which is part of the value; remove it")
			}
		}
	}
	walk(root)
	return r.findings
}

// fieldsAllowingEmptyText lists fields in which an empty text has a meaning, besides
// freeFormFields. It means the core group of an API, a taint or label without a value, or no
// prefix. Names have their own rules.
var fieldsAllowingEmptyText = []string{"apiGroup", "apiVersion", "group", "name", "prefix", "value"}

// textMapFields lists fields that map names to texts.
var textMapFields = []string{"annotations", "labels", "matchLabels", "nodeSelector"}

func checkEmptyGardenerTexts(in ruleInput) []finding {
	if !strings.HasSuffix(in.kind.GVK.Group, ".gardener.cloud") {
		return nil
	}
	r := &findingCollector{}
	var walk func(fieldValue)
	walk = func(t fieldValue) {
		for _, item := range t.items() {
			walk(item)
		}
		for _, name := range t.keys() {
			field := t.lookup(name)
			switch {
			case slices.Contains(freeFormFields, name), slices.Contains(dataContentFields, name), slices.Contains(textMapFields, name):
			case field.value == "" && !slices.Contains(fieldsAllowingEmptyText, name):
				r.add(field, TypeRequired, "is an empty text; give it a value, or leave it out")
			default:
				walk(field)
			}
		}
	}
	walk(fieldValue{value: in.object})
	return r.findings
}

// listsAllowingEmptyText names the lists in which an empty string means the core group of the API.
var listsAllowingEmptyText = []string{"apiGroups", "groups"}

// orderedLists names the lists that are read in their order, or as a whole.
var orderedLists = []string{"args", "command"}

func checkRepeatedItems(in ruleInput) []finding {
	if in.kind.GVK.Group == "" {
		return nil // a Secret or ConfigMap has content of any form
	}
	return findRepeatedItems(fieldValue{value: in.object})
}

func findRepeatedItems(root fieldValue) []finding {
	r := &findingCollector{}
	var walk func(t fieldValue, name string)
	walk = func(t fieldValue, name string) {
		switch t.value.(type) {
		case map[string]any:
			for _, name := range t.keys() {
				if !slices.Contains(orderedLists, name) {
					walk(t.lookup(name), name)
				}
			}
		case []any:
			seen := map[any]string{}
			for _, item := range t.items() {
				switch item.value.(type) {
				case map[string]any, []any:
					walk(item, name)
					continue
				}
				switch first, has := seen[item.value]; {
				case item.value == "" && !slices.Contains(listsAllowingEmptyText, name):
					r.add(item, TypeInvalid, "is empty and has no effect; remove it")
				case has:
					r.add(item, TypeDuplicate, "%v is already in the list as %s; remove one of them", item.value, first)
				default:
					seen[item.value] = item.path
				}
			}
		}
	}
	walk(root, "")
	return r.findings
}

// knownAnnotations lists the annotations that people set and Gardener reads (docs/usage/shoot and
// docs/operations of upstream; pkg/apis/core/v1beta1/constants).
var knownAnnotations = []string{
	"alpha.control-plane.scaling.shoot.gardener.cloud/scale-down-disabled",
	"alpha.kube-apiserver.scaling.shoot.gardener.cloud/class",
	"authentication.gardener.cloud/issuer",
	"backupentry.core.gardener.cloud/force-deletion",
	"confirmation.gardener.cloud/deletion",
	"confirmation.gardener.cloud/force-deletion",
	"dns.gardener.cloud/domain",
	"dns.gardener.cloud/domain-default-priority",
	"dns.gardener.cloud/provider",
	"dns.gardener.cloud/zone",
	"gardener.cloud/created-by",
	"gardener.cloud/operation",
	"maintenance.gardener.cloud/operation",
	"migration.gardener.cloud/live-migrate",
	"namespace.gardener.cloud/keep-after-project-deletion",
	"namespace.gardener.cloud/project",
	"operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref",
	"project.gardener.cloud/skip-stale-check",
	"resources.gardener.cloud/ignore",
	"resources.gardener.cloud/keep-object",
	"resources.gardener.cloud/mode",
	"resources.gardener.cloud/skip-health-check",
	"seed.gardener.cloud/loadbalancer-class",
	"seed.gardener.cloud/protected",
	"shoot.gardener.cloud/cleanup-extended-apis-finalize-grace-period-seconds",
	"shoot.gardener.cloud/cleanup-kubernetes-resources-finalize-grace-period-seconds",
	"shoot.gardener.cloud/cleanup-webhooks-finalize-grace-period-seconds",
	"shoot.gardener.cloud/cloud-config-execution-max-delay-seconds",
	"shoot.gardener.cloud/emergency-stop-reconciliations",
	"shoot.gardener.cloud/expiration-timestamp",
	"shoot.gardener.cloud/ignore",
	"shoot.gardener.cloud/infrastructure-cleanup-wait-period-seconds",
	"shoot.gardener.cloud/no-cleanup",
	"shoot.gardener.cloud/skip-cleanup",
	"shoot.gardener.cloud/skip-readiness",
	"shoot.gardener.cloud/sync-period",
	"shoot.gardener.cloud/tasks",
}

func checkAnnotationNames(in ruleInput) []finding {
	r, annotations := &findingCollector{}, fieldValue{value: in.object}.lookup("metadata", "annotations")
	for _, name := range annotations.keys() {
		if prefix, _, _ := strings.Cut(name, "/"); !strings.Contains(prefix, "garden") || slices.Contains(knownAnnotations, name) {
			continue
		}
		if meant := suggest.ClosestWithin(name, knownAnnotations, 2); meant != "" {
			r.add(annotations.entry(name), TypeNotSupported, "Gardener does not read it; did you mean %q?", meant)
		}
	}
	return r.findings
}

func checkSecretType(in ruleInput) []finding {
	r, field := &findingCollector{}, fieldValue{value: in.object}.lookup("type")
	known := []string{
		string(corev1.SecretTypeOpaque), string(corev1.SecretTypeServiceAccountToken), string(corev1.SecretTypeDockercfg), string(corev1.SecretTypeDockerConfigJson),
		string(corev1.SecretTypeBasicAuth), string(corev1.SecretTypeSSHAuth), string(corev1.SecretTypeTLS), string(corev1.SecretTypeBootstrapToken),
	}
	if text := strings.TrimSpace(field.text()); text != "" && !slices.Contains(known, text) {
		if meant := suggest.ClosestWithin(text, known, 3); meant != "" {
			r.add(field, TypeNotSupported, "no such type is known; did you mean %q?", meant)
		}
	}
	return r.findings
}

func checkSecretKeyPair(in ruleInput) []finding {
	object := fieldValue{value: in.object}
	if object.lookup("type").text() != string(corev1.SecretTypeTLS) {
		return nil
	}
	value := func(key string) ([]byte, fieldValue) {
		if plain := object.lookup("stringData").entry(key); plain.isSet() {
			return []byte(plain.text()), plain
		}
		field := object.lookup("data").entry(key)
		decoded, err := base64.StdEncoding.DecodeString(field.text())
		if err != nil {
			return nil, field // another rule reports it, or it is encrypted
		}
		return decoded, field
	}
	certificate, at := value(corev1.TLSCertKey)
	key, _ := value(corev1.TLSPrivateKeyKey)
	if len(certificate) == 0 || len(key) == 0 || bytes.HasPrefix(certificate, []byte("ENC[")) || bytes.HasPrefix(key, []byte("ENC[")) {
		return nil
	}
	r := &findingCollector{}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		words := strings.TrimPrefix(err.Error(), "tls: ")
		if strings.HasPrefix(words, "failed to find any PEM data") || strings.HasPrefix(words, "private key does not match") {
			r.add(at, TypeInvalid, "is not a certificate with the key in %s: %s", corev1.TLSPrivateKeyKey, words)
		} else { // parser errors may contain parts of the value
			r.add(at, TypeInvalid, "is not a certificate with the key in %s", corev1.TLSPrivateKeyKey)
		}
	}
	return r.findings
}

func checkSchedulesDue(in ruleInput) []finding {
	r := &findingCollector{}
	for _, schedule := range (fieldValue{value: in.object}).lookup("spec", "hibernation", "schedules").items() {
		for _, name := range []string{"start", "end"} {
			if field := schedule.lookup(name); CronProblem(field.text()) == "" && IsNeverDue(field.text()) {
				r.add(field, TypeInvalid, "%q never occurs: no such month has that many days", field.text())
			}
		}
	}
	return r.findings
}

func checkSeedDomains(in ruleInput) []finding {
	r, dns := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "dns")
	internal := dns.lookup("internal", "domain").text()
	for _, item := range dns.lookup("defaults").items() {
		if domain := item.lookup("domain"); internal != "" && domain.text() == internal {
			r.add(domain, TypeInvalid, "%q is also the internal domain, so a Shoot without its own domain has two records of one name", internal)
		}
	}
	return r.findings
}

func checkReservedResources(in ruleInput) []finding {
	standard := []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory), string(corev1.ResourceEphemeralStorage)}
	r := &findingCollector{}
	for _, config := range (fieldValue{value: in.object}).lookup("spec", "settings", "excessCapacityReservation", "configs").items() {
		resources := config.lookup("resources")
		for _, name := range resources.keys() {
			if strings.Contains(name, "/") || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) || slices.Contains(standard, name) {
				continue
			}
			hint := ""
			if meant := suggest.Closest(name, standard); meant != "" {
				hint = "; did you mean \"" + meant + "\"?"
			}
			r.add(resources.entry(name), TypeNotSupported, "%q is not a resource of nodes, such as cpu, memory or example.com/gpu%s", name, hint)
		}
	}
	return r.findings
}
