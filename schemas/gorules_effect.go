package schemas

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pergola-dev/pergola/schemas/requests"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// effectGoRules warn of values that the API takes, and that do nothing, or nothing that anybody wants.
func effectGoRules() []goRule {
	warning := func(kind, name, title, doc, source string, check func(ruleInput) []finding) goRule {
		prefix := strings.ToLower(kind)
		if kind == "*" {
			prefix = "any"
		}
		return goRule{Rule: Rule{ID: prefix + "/" + name, Kind: kind, Title: title, Doc: doc, Source: source,
			In: "go", Severity: SeverityWarning, Scope: scopeObject}, check: check}
	}
	encrypted := func(kind, server string) goRule {
		return warning(kind, "encrypted-resources", "Resources that are encrypted exist",
			"A resource without a dot belongs to the core group. An entry that does not exist encrypts nothing. In Go, because the message names the resource that was meant.",
			"ours", encryptionResources(server)).about(server + ".encryptionConfig")
	}
	return []goRule{
		warning("*", "amounts", "Amounts of cores, memory and volumes are amounts that machines have",
			"The suffix m stands for thousandths, M and Gi for many: 512m of memory is half a byte, 500M of cpu are 500 million cores. In Go, because CUE has no arithmetic on quantities.",
			"ours", amounts).about(""),
		warning("*", "annotation-names", "Annotations of Gardener have a name that is read",
			"A name nearly like one that Gardener reads does nothing. In Go, because the message names the one that was meant.",
			"ours", annotationNames).about("metadata.annotations"),
		warning("Secret", "key-pair", "A Secret for TLS has a certificate and its key",
			"Servers do not start with another. In Go, because certificates are parsed, and because no value may get into a message.",
			"crypto/tls, X509KeyPair", secretKeyPair).about("data", "stringData"),
		warning("Shoot", "schedules-due", "Schedules of hibernation come",
			"A schedule for the 31st of February never does. In Go, because CUE has no calendar.",
			"github.com/robfig/cron", schedulesDue).about("spec.hibernation.schedules"),
		encrypted("Shoot", "spec.kubernetes.kubeAPIServer"),
		encrypted("Garden", "spec.virtualCluster.kubernetes.kubeAPIServer"),
		warning("Garden", "quota-resources", "Quotas for projects count resources that exist",
			"A count of another one limits nothing. In Go, because the resources are those of the kinds that have a schema.",
			"ours", quotaResources).about("spec.virtualCluster.gardener.gardenerControllerManager.defaultProjectQuotas.config"),
		warning("Seed", "domains-apart", "The domain for Shoots is another one than the internal domain",
			"Both records of a Shoot's API server would have one name. In Go, because items of a list are compared with another field.",
			"pkg/gardenlet/operation/botanist/dnsrecord.go", seedDomains).about("spec.dns"),
		warning("Seed", "reserved-resources", "Capacity is reserved of resources that nodes have",
			"The pods that reserve it are refused with another name. In Go, because the message names the one that was meant.",
			"k8s.io/kubernetes/pkg/apis/core/helper, IsStandardContainerResourceName", reservedResources).about("spec.settings.excessCapacityReservation.configs.resources"),
	}
}

// roomFields are fields for amounts of memory or of a volume, beside those for resources by their names.
var roomFields = []string{"capacity", "containerLogMaxSize", "ephemeralStorage", "imageFSAvailable", "memoryAvailable", "minimumSize", "nodeFSAvailable", "volumeSize"}

// freeFields are fields whose content extensions, charts or others define.
var freeFields = []string{"controlPlaneConfig", "infrastructureConfig", "metadata", "providerConfig", "status", "values"}

func amounts(in ruleInput) []finding {
	if in.kind.GVK.Group == "" {
		return nil // a Secret or ConfigMap has fields of any meaning
	}
	r := &report{}
	var walk func(tree)
	walk = func(t tree) {
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
					if wrong := structure.Amount(resource, quantity); wrong != "" {
						r.add(field, TypeInvalid, "%v %s", field.value, wrong)
					}
					continue
				}
				walk(field)
			}
		case []any:
			for _, item := range t.items() {
				walk(item)
			}
		}
	}
	walk(tree{value: in.object})
	return r.findings
}

// readAnnotations are those that people set and Gardener reads (docs/usage/shoot and docs/operations of upstream; pkg/apis/core/v1beta1/constants).
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
		if meant := SuggestWithin(name, readAnnotations, 2); meant != "" {
			r.add(annotations.key(name), TypeNotSupported, "nobody reads it; did you mean %q?", meant)
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
			return nil, field // that is found elsewhere, or it is encrypted
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
		} else { // texts of parsers may have parts of the value
			r.add(at, TypeInvalid, "is no certificate with the key in %s", corev1.TLSPrivateKeyKey)
		}
	}
	return r.findings
}

func schedulesDue(in ruleInput) []finding {
	r := &report{}
	for _, schedule := range (tree{value: in.object}).at("spec", "hibernation", "schedules").items() {
		for _, name := range []string{"start", "end"} {
			if field := schedule.at(name); CronProblem(field.text()) == "" && isNever(field.text()) {
				r.add(field, TypeInvalid, "%q never comes: no such month has that many days", field.text())
			}
		}
	}
	return r.findings
}

func encryptionResources(server string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &report{}
		for _, item := range (tree{value: in.object}).at(strings.Split(server, ".")...).at("encryptionConfig", "resources").items() {
			name, group, _ := strings.Cut(item.text(), ".")
			wrong := requests.Resource(name, []string{group}, pluralsOf)
			switch {
			case name == "" || strings.Contains(name, "*") || strings.ToLower(item.text()) != item.text(): // that is an error
			case wrong != "":
				r.add(item, TypeNotSupported, "%s; write NAME, or NAME.GROUP for one of another group", wrong)
			case in.kind.GVK.Kind == "Garden" && strings.HasSuffix(group, "gardener.cloud") && hasAggregatedAPI(in.landscape):
				r.add(item, TypeInvalid, "kube-apiserver does not store %s, since spec.gardenAPI of landscape.yaml is aggregated: list it in spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig", item.text())
			case group == "" && !hasResource("", name):
				r.add(item, TypeNotSupported, "%q is no resource of the core group; write NAME.GROUP for one of another group", name)
			}
		}
		return r.findings
	}
}

// hasAggregatedAPI tells whether gardener-apiserver serves and stores the API of the garden, as the landscape says.
func hasAggregatedAPI(landscape *surroundings) bool {
	if landscape == nil {
		return false
	}
	for _, object := range landscape.objects("Landscape") {
		if (tree{value: object}).at("spec", "gardenAPI").text() == "aggregated" {
			return true
		}
	}
	return false
}

func hasResource(group, name string) bool {
	for _, plural := range requests.Kubernetes(group) {
		if plural == name {
			return true
		}
	}
	return false
}

func quotaResources(in ruleInput) []finding {
	r := &report{}
	for _, quota := range gardenComponent(in.object, "gardenerControllerManager").at("defaultProjectQuotas").items() {
		hard := quota.at("config", "spec", "hard")
		for _, name := range hard.keys() {
			counted, is := strings.CutPrefix(name, "count/")
			if !is {
				continue
			}
			resource, group, _ := strings.Cut(counted, ".")
			if wrong := requests.Resource(resource, []string{group}, pluralsOf); wrong != "" {
				r.add(hard.key(name), TypeNotSupported, "%s; write count/NAME.GROUP", wrong)
			}
		}
	}
	return r.findings
}

// pluralsOf are the resources of a group that has schemas here, or of Kubernetes.
func pluralsOf(group string) map[string]string {
	out := maps.Clone(requests.Kubernetes(group))
	if out == nil {
		out = map[string]string{}
	}
	for _, gvk := range embeddedKinds().known {
		if gvk.Group != group {
			continue
		}
		plural, singular := meta.UnsafeGuessKindToResource(gvk)
		out[singular.Resource] = plural.Resource
	}
	return out
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
			if meant := Suggest(name, standard); meant != "" {
				hint = "; did you mean \"" + meant + "\"?"
			}
			r.add(resources.key(name), TypeNotSupported, "%q is no resource of nodes, such as cpu, memory or example.com/gpu%s", name, hint)
		}
	}
	return r.findings
}
