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

// effectWarning returns a warning about a value that the API accepts.
func effectWarning(kind, name, title, doc, source string, check func(ruleInput) []finding) goRule {
	prefix := strings.ToLower(kind)
	if kind == "*" {
		prefix = "any"
	}
	return goRule{Rule: Rule{ID: prefix + "/" + name, Kind: kind, Title: title, Doc: doc, Source: source,
		In: "go", Severity: SeverityWarning, Scope: scopeObject}, check: check}
}

// effectGoRules lists warnings about values that the API accepts, but that have no effect or an
// unwanted one.
func effectGoRules() []goRule {
	return []goRule{
		effectWarning("*", "amounts", "Amounts of cores, memory and volumes are amounts that machines have",
			"The suffix m stands for thousandths, M and Gi for many: 512m of memory is half a byte, 500M of cpu are 500 million cores. In Go, because CUE has no arithmetic on quantities.",
			"ours", amounts).about(""),
		effectWarning("*", "spaces", "Values neither begin nor end with a space",
			"Values are compared and looked up as they are written, with their spaces. In Go, because it is about every text of an object.",
			"ours", spaces).about(""),
		effectWarning("*", "repeated-items", "An item of a list is there once, and has a value",
			"A text or number that a list has twice is a slip of the pen, as is an empty text. In Go, because it is about every list of an object.",
			"ours", repeatedItems).about(""),
		effectWarning("*", "empty-values", "A field of Gardener has a value",
			"An empty text is most likely one that was to be filled in; leave the field out. In Go, because it is about every text of an object.",
			"ours", emptyTextsOf).about(""),
		effectWarning("*", "annotation-names", "Annotations of Gardener have a name that is read",
			"A name nearly like one that Gardener reads does nothing. In Go, because the message names the one that was meant.",
			"ours", annotationNames).about("metadata.annotations"),
		effectWarning("Secret", "known-type", "The type of a Secret is not nearly that of another one",
			"A type that nobody knows has no checks, and who looks for the one that was meant does not find it. In Go, because the message names the one that was meant.",
			"k8s.io/api/core/v1, SecretType", knownSecretType).about("type"),
		effectWarning("Secret", "key-pair", "A Secret for TLS has a certificate and its key",
			"Servers do not start with another. In Go, because certificates are parsed, and because no value may get into a message.",
			"crypto/tls, X509KeyPair", secretKeyPair).about("data", "stringData"),
		effectWarning("Shoot", "schedules-due", "Schedules of hibernation come",
			"A schedule for the 31st of February never does. In Go, because CUE has no calendar.",
			"github.com/robfig/cron", schedulesDue).about("spec.hibernation.schedules"),
		effectWarning("Garden", "gardener-admission-ignored", "Configurations of admission plugins of gardener-apiserver have fields that are read",
			"A field that the plugin does not have is dropped. In Go, because the table is that of the plugins of kube-apiserver, too.",
			"plugin/pkg/shoot/*/apis", gardenGardenerAdmissionIgnored).about("spec.virtualCluster.gardener.gardenerAPIServer.admissionPlugins.config"),
		effectWarning("Seed", "domains-apart", "The domain for Shoots is another one than the internal domain",
			"Both records of a Shoot's API server would have one name. In Go, because items of a list are compared with another field.",
			"pkg/gardenlet/operation/botanist/dnsrecord.go", seedDomains).about("spec.dns"),
		effectWarning("Seed", "reserved-resources", "Capacity is reserved of resources that nodes have",
			"The pods that reserve it are refused with another name. In Go, because the message names the one that was meant.",
			"k8s.io/kubernetes/pkg/apis/core/helper, IsStandardContainerResourceName", reservedResources).about("spec.settings.excessCapacityReservation.configs.resources"),
	}
}

// roomFields lists fields for amounts of memory or of a volume, besides fields named after a
// resource.
var roomFields = []string{"capacity", "containerLogMaxSize", "ephemeralStorage", "imageFSAvailable", "memoryAvailable", "minimumSize", "nodeFSAvailable", "volumeSize"}

// freeFields lists fields whose content extensions, charts or others define.
var freeFields = []string{"controlPlaneConfig", "infrastructureConfig", "metadata", "providerConfig", "status", "values"}

func amounts(in ruleInput) []finding {
	if in.kind.GVK.Group == "" {
		return nil // a Secret or ConfigMap has fields of any meaning
	}
	r := &report{}
	var walk func(t tree, ofPod bool)
	walk = func(t tree, ofPod bool) {
		switch t.value.(type) {
		case map[string]any:
			for _, name := range t.keys() {
				resource := name
				if slices.Contains(roomFields, name) {
					resource = string(corev1.ResourceMemory)
				}
				field := t.at(name)
				if slices.Contains(freeFields, name) {
					continue
				}
				if quantity, ok := field.quantity(); ok {
					wrong := structure.Amount(resource, quantity)
					if wrong == "" && ofPod {
						wrong = structure.AmountOfPod(resource, quantity)
					}
					if wrong != "" {
						r.add(field, TypeInvalid, "%v %s", field.value, wrong)
					}
					continue
				}
				walk(field, slices.Contains(podFields, name))
			}
		case []any:
			for _, item := range t.items() {
				walk(item, false)
			}
		}
	}
	walk(tree{value: in.object}, false)
	return r.findings
}

// podFields lists fields for the resources of one pod.
var podFields = []string{"maxAllowed", "minAllowed"}

func spaces(in ruleInput) []finding { return spacesIn(tree{value: in.object}) }

// contentFields lists fields of a Secret or ConfigMap for content of any form.
var contentFields = []string{"binaryData", "data", "stringData"}

func spacesIn(root tree) []finding {
	r := &report{}
	var walk func(tree)
	walk = func(t tree) {
		switch value := t.value.(type) {
		case map[string]any:
			for _, name := range t.keys() {
				if !slices.Contains(contentFields, name) {
					walk(t.at(name))
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

// mayBeEmpty lists fields in which an empty text has a meaning, besides freeFields. It means the
// core group of an API, a taint or label without a value, or no prefix. Names have rules of their
// own.
var mayBeEmpty = []string{"apiGroup", "apiVersion", "group", "name", "prefix", "value"}

// fieldsOfTexts lists fields that map names to texts.
var fieldsOfTexts = []string{"annotations", "labels", "matchLabels", "nodeSelector"}

func emptyTextsOf(in ruleInput) []finding {
	if !strings.HasSuffix(in.kind.GVK.Group, ".gardener.cloud") {
		return nil
	}
	r := &report{}
	var walk func(tree)
	walk = func(t tree) {
		for _, item := range t.items() {
			walk(item)
		}
		for _, name := range t.keys() {
			field := t.at(name)
			switch {
			case slices.Contains(freeFields, name), slices.Contains(contentFields, name), slices.Contains(fieldsOfTexts, name):
			case field.value == "" && !slices.Contains(mayBeEmpty, name):
				r.add(field, TypeRequired, "is an empty text; give it a value, or leave it out")
			default:
				walk(field)
			}
		}
	}
	walk(tree{value: in.object})
	return r.findings
}

// listsWithEmptyText names the lists in which an empty text means the core group of the API.
var listsWithEmptyText = []string{"apiGroups", "groups"}

// orderedLists names the lists that are read in their order, or as a whole.
var orderedLists = []string{"args", "command"}

func repeatedItems(in ruleInput) []finding {
	if in.kind.GVK.Group == "" {
		return nil // a Secret or ConfigMap has content of any form
	}
	return repeatedIn(tree{value: in.object})
}

func repeatedIn(root tree) []finding {
	r := &report{}
	var walk func(t tree, name string)
	walk = func(t tree, name string) {
		switch t.value.(type) {
		case map[string]any:
			for _, name := range t.keys() {
				if !slices.Contains(orderedLists, name) {
					walk(t.at(name), name)
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
				case item.value == "" && !slices.Contains(listsWithEmptyText, name):
					r.add(item, TypeInvalid, "is empty, and stands for nothing; remove it")
				case has:
					r.add(item, TypeDuplicate, "%v is in the list already, as %s; remove one of them", item.value, first)
				default:
					seen[item.value] = item.path
				}
			}
		}
	}
	walk(root, "")
	return r.findings
}

// readAnnotations lists the annotations that people set and Gardener reads (docs/usage/shoot and
// docs/operations of upstream; pkg/apis/core/v1beta1/constants).
var readAnnotations = []string{
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

func annotationNames(in ruleInput) []finding {
	r, annotations := &report{}, tree{value: in.object}.at("metadata", "annotations")
	for _, name := range annotations.keys() {
		if prefix, _, _ := strings.Cut(name, "/"); !strings.Contains(prefix, "garden") || slices.Contains(readAnnotations, name) {
			continue
		}
		if meant := suggest.Within(name, readAnnotations, 2); meant != "" {
			r.add(annotations.key(name), TypeNotSupported, "nobody reads it; did you mean %q?", meant)
		}
	}
	return r.findings
}

func knownSecretType(in ruleInput) []finding {
	r, field := &report{}, tree{value: in.object}.at("type")
	known := []string{
		string(corev1.SecretTypeOpaque), string(corev1.SecretTypeServiceAccountToken), string(corev1.SecretTypeDockercfg), string(corev1.SecretTypeDockerConfigJson),
		string(corev1.SecretTypeBasicAuth), string(corev1.SecretTypeSSHAuth), string(corev1.SecretTypeTLS), string(corev1.SecretTypeBootstrapToken),
	}
	if text := strings.TrimSpace(field.text()); text != "" && !slices.Contains(known, text) {
		if meant := suggest.Within(text, known, 3); meant != "" {
			r.add(field, TypeNotSupported, "no such type is known; did you mean %q?", meant)
		}
	}
	return r.findings
}

func secretKeyPair(in ruleInput) []finding {
	object := tree{value: in.object}
	if object.at("type").text() != string(corev1.SecretTypeTLS) {
		return nil
	}
	value := func(key string) ([]byte, tree) {
		if plain := object.at("stringData").key(key); plain.set() {
			return []byte(plain.text()), plain
		}
		field := object.at("data").key(key)
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
	r := &report{}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		words := strings.TrimPrefix(err.Error(), "tls: ")
		if strings.HasPrefix(words, "failed to find any PEM data") || strings.HasPrefix(words, "private key does not match") {
			r.add(at, TypeInvalid, "is no certificate with the key in %s: %s", corev1.TLSPrivateKeyKey, words)
		} else { // parser errors may contain parts of the value
			r.add(at, TypeInvalid, "is no certificate with the key in %s", corev1.TLSPrivateKeyKey)
		}
	}
	return r.findings
}

func schedulesDue(in ruleInput) []finding {
	r := &report{}
	for _, schedule := range (tree{value: in.object}).at("spec", "hibernation", "schedules").items() {
		for _, name := range []string{"start", "end"} {
			if field := schedule.at(name); CronProblem(field.text()) == "" && IsNever(field.text()) {
				r.add(field, TypeInvalid, "%q never comes: no such month has that many days", field.text())
			}
		}
	}
	return r.findings
}

func seedDomains(in ruleInput) []finding {
	r, dns := &report{}, tree{value: in.object}.at("spec", "dns")
	internal := dns.at("internal", "domain").text()
	for _, item := range dns.at("defaults").items() {
		if domain := item.at("domain"); internal != "" && domain.text() == internal {
			r.add(domain, TypeInvalid, "%q is the internal domain, too: a Shoot without a domain of its own has two records of one name", internal)
		}
	}
	return r.findings
}

func reservedResources(in ruleInput) []finding {
	standard := []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory), string(corev1.ResourceEphemeralStorage)}
	r := &report{}
	for _, config := range (tree{value: in.object}).at("spec", "settings", "excessCapacityReservation", "configs").items() {
		resources := config.at("resources")
		for _, name := range resources.keys() {
			if strings.Contains(name, "/") || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) || slices.Contains(standard, name) {
				continue
			}
			hint := ""
			if meant := suggest.Word(name, standard); meant != "" {
				hint = "; did you mean \"" + meant + "\"?"
			}
			r.add(resources.key(name), TypeNotSupported, "%q is no resource of nodes, such as cpu, memory or example.com/gpu%s", name, hint)
		}
	}
	return r.findings
}
