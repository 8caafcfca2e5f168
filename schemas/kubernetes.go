package schemas

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// What Kubernetes knows, by version: tables for the rules of all kinds that configure Kubernetes
// (Shoot, Garden). They are data in rules/lib:
//
//   - featuregates.tsv: from test/compatibility_lifecycle/reference/versioned_feature_list.yaml of
//     Kubernetes 1.36; the gates that are gone by then from Gardener's
//     pkg/utils/validation/features
//   - admissionplugins.tsv: from pkg/kubeapiserver/options/plugins.go; which are required, may have
//     a configuration and a kubeconfig from Gardener's pkg/utils/validation/admissionplugins
//   - apis.tsv: from the informers of client-go 0.36; the older ones and the required ones from
//     Gardener's pkg/utils/validation/apigroups. Those that are "fixed" have no informers, as all
//     that is in them are reviews, or are served by other parts of kube-apiserver: Kubernetes has
//     them, Gardener knows no switch for them
//
// "added" and "removed" are minor versions; empty means before the oldest, or after the newest,
// supported version.
//
//go:embed rules/lib/*.tsv
var kubernetesData embed.FS

// span is a row of a table: a range of minor versions with further columns.
type span struct {
	added, removed int // minor versions, 0 for none
	more           []string
}

func (s span) holds(minor int) bool {
	return minor >= s.added && (s.removed == 0 || minor < s.removed)
}

// words says in which versions something is known.
func (s span) words() string {
	switch {
	case s.added > 0 && s.removed > 0:
		return fmt.Sprintf("it exists from Kubernetes 1.%d to 1.%d", s.added, s.removed-1)
	case s.added > 0:
		return fmt.Sprintf("it exists since Kubernetes 1.%d", s.added)
	default:
		return fmt.Sprintf("it was removed with Kubernetes 1.%d", s.removed)
	}
}

type kubernetesTables struct {
	featureGates, admissionPlugins, apis map[string]span
}

// knownToKubernetes reads the tables once. They are part of the program: a fault in them is one of
// ours.
var knownToKubernetes = sync.OnceValue(func() kubernetesTables {
	return kubernetesTables{
		featureGates:     readTable("featuregates"),
		admissionPlugins: readTable("admissionplugins"),
		apis:             readTable("apis"),
	}
})

func readTable(name string) map[string]span {
	data, err := kubernetesData.ReadFile("rules/lib/" + name + ".tsv")
	if err != nil {
		panic(fmt.Sprintf("reading an embedded table: %v", err))
	}
	table := map[string]span{}
	for i, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		columns := strings.Split(line, "\t")
		if i == 0 || len(columns) < 3 {
			continue
		}
		table[columns[0]] = span{added: minorOf(columns[1]), removed: minorOf(columns[2]), more: columns[3:]}
	}
	return table
}

// minorOf gives the minor version of "1.34", "v1.34.1" or "1.34.1-rc.0", and 0 for what is no
// version.
func minorOf(version string) int {
	v, ok := parseVersion(version)
	if !ok || v[0] != 1 {
		return 0
	}
	return v[1]
}

// parseVersion reads major, minor and patch; the patch may be left out. Pre-releases and build data
// are ignored, as upstream does when it compares versions of Kubernetes.
func parseVersion(text string) (version [3]int, ok bool) {
	text = strings.TrimPrefix(text, "v")
	if i := strings.IndexAny(text, "-+"); i >= 0 {
		text = text[:i]
	}
	parts := strings.Split(text, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return version, false
	}
	for i, part := range parts {
		number, err := strconv.Atoi(part)
		if err != nil || number < 0 {
			return version, false
		}
		version[i] = number
	}
	return version, true
}

// featureGates checks a map of feature gates. A gate that never existed is Invalid; one that does
// not exist in this version, or that is locked to the other value, is Forbidden.
func (r *report) featureGates(gates tree, version string) {
	keys := gates.keys()
	minor := minorOf(version)
	if len(keys) == 0 || minor == 0 {
		return
	}
	table := knownToKubernetes().featureGates
	for _, name := range keys {
		gate := gates.at(name)
		known, ok := table[name]
		switch {
		case !ok:
			r.add(gate, TypeInvalid, "Kubernetes has no feature gate %q%s", name, suggestFrom(name, table))
		case !known.holds(minor):
			r.add(gate, TypeForbidden, "the feature gate %q does not exist in Kubernetes 1.%d: %s", name, minor, known.words())
		default:
			locked, value := minorOf(known.more[0]), known.more[1] == "true"
			if locked > 0 && minor >= locked && gate.is() != value {
				r.add(gate, TypeForbidden, "the feature gate %q is locked to %t since Kubernetes 1.%d; remove it", name, value, locked)
			}
		}
	}
}

// UnknownFeatureGate says why Kubernetes has no feature gate of a name in any version that is
// known; "" where it has.
func UnknownFeatureGate(name string) string {
	table := knownToKubernetes().featureGates
	if _, ok := table[name]; ok || name == "AllAlpha" || name == "AllBeta" {
		return ""
	}
	return fmt.Sprintf("Kubernetes has no feature gate %q%s", name, suggestFrom(name, table))
}

func suggestFrom(word string, table map[string]span) string {
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	if better := suggest.Word(word, names); better != "" {
		return fmt.Sprintf("; did you mean %q?", better)
	}
	return ""
}

// admissionPlugins checks the list of admission plugins.
func (r *report) admissionPlugins(plugins tree, version string) {
	minor := minorOf(version)
	table := knownToKubernetes().admissionPlugins
	for _, plugin := range plugins.items() {
		name := plugin.at("name")
		if name.text() == "" {
			r.add(name, TypeRequired, "must name the admission plugin")
			continue
		}
		known, ok := table[name.text()]
		switch {
		case !ok:
			r.add(name, TypeInvalid, "Kubernetes has no admission plugin %q%s", name.text(), suggestFrom(name.text(), table))
		case minor > 0 && !known.holds(minor):
			r.add(name, TypeForbidden, "the admission plugin %q does not exist in Kubernetes 1.%d: %s", name.text(), minor, known.words())
		default:
			r.admissionPlugin(plugin, known.more[0])
		}
	}
}

func (r *report) admissionPlugin(plugin tree, use string) {
	name, config := plugin.at("name").text(), plugin.at("config")
	if config.set() && !strings.Contains(use, "config") {
		r.add(config, TypeForbidden, "the admission plugin %q takes no configuration", name)
	}
	if plugin.at("disabled").is() && strings.Contains(use, "required") {
		r.add(plugin, TypeForbidden, "the admission plugin %q is needed by Gardener and cannot be disabled", name)
	}
	if secret := plugin.at("kubeconfigSecretName"); secret.set() && !strings.Contains(use, "kubeconfig") {
		r.add(secret, TypeForbidden, "the admission plugin %q calls nobody, so that it takes no kubeconfig; "+
			"ImagePolicyWebhook, MutatingAdmissionWebhook and ValidatingAdmissionWebhook do", name)
	}
	if name == "PodSecurity" && config.set() {
		r.podSecurity(config)
	}
}

// podSecurity checks what the decoder of Kubernetes asks for: the version of a
// PodSecurityConfiguration.
func (r *report) podSecurity(config tree) {
	kind, version := config.at("kind").text(), config.at("apiVersion").text()
	group, number, _ := strings.Cut(version, "/")
	known := group == "pod-security.admission.config.k8s.io" && (number == "v1" || number == "v1beta1" || number == "v1alpha1")
	if kind != "PodSecurityConfiguration" || !known {
		r.add(config, TypeInvalid, "must be a PodSecurityConfiguration of pod-security.admission.config.k8s.io/v1, but has kind %q and apiVersion %q", kind, version)
	}
}

// runtimeConfig checks which APIs are turned on and off. Some cannot be turned off, because
// Gardener needs them.
func (r *report) runtimeConfig(config tree, version string, workerless bool) {
	minor := minorOf(version)
	table := knownToKubernetes().apis
	for _, api := range config.keys() {
		field := config.key(api)
		known, ok := table[api]
		switch {
		case !ok:
			r.add(field, TypeInvalid, "Kubernetes has no API %q%s; write GROUP/VERSION or GROUP/VERSION/RESOURCE, v1 for the core group", api, suggestFrom(api, table))
		case known.more[0] == "fixed":
			r.add(field, TypeInvalid, "Gardener has no switch for the API %q, which every Kubernetes serves; remove it", api)
		case minor > 0 && !known.holds(minor):
			r.add(field, TypeForbidden, "the API %q does not exist in Kubernetes 1.%d: %s", api, minor, known.words())
		case !field.is():
			if needed := neededAPI(table, api, workerless); needed != "" {
				r.add(field, TypeForbidden, "Gardener needs %q, so that %q cannot be turned off", needed, api)
			}
		}
	}
}

// neededAPI gives the API that is lost with another one and that Gardener needs: itself, its group,
// or a resource of it.
func neededAPI(table map[string]span, api string, workerless bool) string {
	needed := func(name string) bool {
		row, ok := table[name]
		return ok && (row.more[0] == "always" || row.more[0] == "workers" && !workerless)
	}
	if needed(api) {
		return api
	}
	if i := strings.LastIndexByte(api, '/'); i > 0 && needed(api[:i]) {
		return api[:i]
	}
	for name := range table {
		if strings.HasPrefix(name, api+"/") && needed(name) {
			return name
		}
	}
	return ""
}
