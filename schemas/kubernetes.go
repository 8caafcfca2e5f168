// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// kubernetesData holds tables of the features of each Kubernetes version, for the rules of all
// kinds that configure Kubernetes (Shoot, Garden). They are data in rules/lib:
//
//   - featuregates.tsv: from test/compatibility_lifecycle/reference/versioned_feature_list.yaml of
//     Kubernetes 1.36; gates removed by then from Gardener's pkg/utils/validation/features
//   - admissionplugins.tsv: from pkg/kubeapiserver/options/plugins.go; which are required, may have
//     a configuration and a kubeconfig from Gardener's pkg/utils/validation/admissionplugins
//   - apis.tsv: from the informers of client-go 0.36; older and required APIs from Gardener's
//     pkg/utils/validation/apigroups. "fixed" APIs have no informers: all their resources are
//     reviews, or other parts of kube-apiserver serve them. Gardener has no switch for them
//
// "added" and "removed" are minor versions; empty means before the oldest, or after the newest,
// supported version.
//
//go:embed rules/lib/*.tsv
var kubernetesData embed.FS

// versionRange is a row of a table: a range of minor versions with further columns.
type versionRange struct {
	added, removed int // minor versions, 0 for none
	columns        []string
}

func (s versionRange) hasVersion(minor int) bool {
	return minor >= s.added && (s.removed == 0 || minor < s.removed)
}

// description describes the versions in which something exists.
func (s versionRange) description() string {
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
	featureGates, admissionPlugins, apis map[string]versionRange
}

// kubernetesFeatures returns the tables, read once. They are embedded, so a fault in them is a bug.
var kubernetesFeatures = sync.OnceValue(func() kubernetesTables {
	return kubernetesTables{
		featureGates:     readTable("featuregates"),
		admissionPlugins: readTable("admissionplugins"),
		apis:             readTable("apis"),
	}
})

func readTable(name string) map[string]versionRange {
	data, err := kubernetesData.ReadFile("rules/lib/" + name + ".tsv")
	if err != nil {
		panic(fmt.Sprintf("reading an embedded table: %v", err))
	}
	table := map[string]versionRange{}
	for i, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		columns := strings.Split(line, "\t")
		if i == 0 || len(columns) < 3 {
			continue
		}
		table[columns[0]] = versionRange{added: minorOf(columns[1]), removed: minorOf(columns[2]), columns: columns[3:]}
	}
	return table
}

// minorOf returns the minor version of "1.34", "v1.34.1" or "1.34.1-rc.0", and 0 for anything else.
func minorOf(version string) int {
	v, ok := parseVersion(version)
	if !ok || v[0] != 1 {
		return 0
	}
	return v[1]
}

// parseVersion parses major, minor and an optional patch version. Like upstream's comparison of
// Kubernetes versions, it ignores pre-releases and build data.
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

// checkFeatureGates checks a map of feature gates. A gate that never existed is Invalid. A gate
// that does not exist in this version, or is locked to the other value, is Forbidden.
func (r *findingCollector) checkFeatureGates(gates fieldValue, version string) {
	keys := gates.keys()
	minor := minorOf(version)
	if len(keys) == 0 || minor == 0 {
		return
	}
	table := kubernetesFeatures().featureGates
	for _, name := range keys {
		gate := gates.lookup(name)
		known, ok := table[name]
		switch {
		case !ok:
			r.add(gate, TypeInvalid, "Kubernetes has no feature gate %q%s", name, suggestFromTable(name, table))
		case !known.hasVersion(minor):
			r.add(gate, TypeForbidden, "the feature gate %q does not exist in Kubernetes 1.%d: %s", name, minor, known.description())
		default:
			locked, value := minorOf(known.columns[0]), known.columns[1] == "true"
			if locked > 0 && minor >= locked && gate.isTrue() != value {
				r.add(gate, TypeForbidden, "the feature gate %q is locked to %t since Kubernetes 1.%d; remove it", name, value, locked)
			}
		}
	}
}

// FeatureGateProblem describes that no known version of Kubernetes has a feature gate, or returns
// "".
func FeatureGateProblem(name string) string {
	table := kubernetesFeatures().featureGates
	if _, ok := table[name]; ok || name == "AllAlpha" || name == "AllBeta" {
		return ""
	}
	return fmt.Sprintf("Kubernetes has no feature gate %q%s", name, suggestFromTable(name, table))
}

func suggestFromTable(word string, table map[string]versionRange) string {
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	if better := suggest.Closest(word, names); better != "" {
		return fmt.Sprintf("; did you mean %q?", better)
	}
	return ""
}

// checkAdmissionPlugins checks the list of admission plugins.
func (r *findingCollector) checkAdmissionPlugins(plugins fieldValue, version string) {
	minor := minorOf(version)
	table := kubernetesFeatures().admissionPlugins
	for _, plugin := range plugins.items() {
		name := plugin.lookup("name")
		if name.text() == "" {
			r.add(name, TypeRequired, "must name the admission plugin")
			continue
		}
		known, ok := table[name.text()]
		switch {
		case !ok:
			r.add(name, TypeInvalid, "Kubernetes has no admission plugin %q%s", name.text(), suggestFromTable(name.text(), table))
		case minor > 0 && !known.hasVersion(minor):
			r.add(name, TypeForbidden, "the admission plugin %q does not exist in Kubernetes 1.%d: %s", name.text(), minor, known.description())
		default:
			r.checkAdmissionPlugin(plugin, known.columns[0])
		}
	}
}

func (r *findingCollector) checkAdmissionPlugin(plugin fieldValue, use string) {
	name, config := plugin.lookup("name").text(), plugin.lookup("config")
	if config.isSet() && !strings.Contains(use, "config") {
		r.add(config, TypeForbidden, "the admission plugin %q takes no configuration", name)
	}
	if plugin.lookup("disabled").isTrue() && strings.Contains(use, "required") {
		r.add(plugin, TypeForbidden, "the admission plugin %q is needed by Gardener and cannot be disabled", name)
	}
	if secret := plugin.lookup("kubeconfigSecretName"); secret.isSet() && !strings.Contains(use, "kubeconfig") {
		r.add(secret, TypeForbidden, "the admission plugin %q does not call a webhook, so it takes no kubeconfig; "+
			"ImagePolicyWebhook, MutatingAdmissionWebhook and ValidatingAdmissionWebhook take one", name)
	}
	if name == "PodSecurity" && config.isSet() {
		r.checkPodSecurity(config)
	}
}

// checkPodSecurity checks the version of a PodSecurityConfiguration, as the decoder of Kubernetes
// does.
func (r *findingCollector) checkPodSecurity(config fieldValue) {
	kind, version := config.lookup("kind").text(), config.lookup("apiVersion").text()
	group, number, _ := strings.Cut(version, "/")
	known := group == "pod-security.admission.config.k8s.io" && (number == "v1" || number == "v1beta1" || number == "v1alpha1")
	if kind != "PodSecurityConfiguration" || !known {
		r.add(config, TypeInvalid, "must be a PodSecurityConfiguration of pod-security.admission.config.k8s.io/v1, but has kind %q and apiVersion %q", kind, version)
	}
}

// checkRuntimeConfig checks which APIs are switched on and off. Gardener needs some of them on.
func (r *findingCollector) checkRuntimeConfig(config fieldValue, version string, workerless bool) {
	minor := minorOf(version)
	table := kubernetesFeatures().apis
	for _, api := range config.keys() {
		field := config.entry(api)
		known, ok := table[api]
		switch {
		case !ok:
			r.add(field, TypeInvalid, "Kubernetes has no API %q%s; write GROUP/VERSION or GROUP/VERSION/RESOURCE, v1 for the core group", api, suggestFromTable(api, table))
		case known.columns[0] == "fixed":
			r.add(field, TypeInvalid, "Gardener has no switch for the API %q, which every Kubernetes serves; remove it", api)
		case minor > 0 && !known.hasVersion(minor):
			r.add(field, TypeForbidden, "the API %q does not exist in Kubernetes 1.%d: %s", api, minor, known.description())
		case !field.isTrue():
			if needed := requiredAPI(table, api, workerless); needed != "" {
				r.add(field, TypeForbidden, "Gardener needs %q, so %q cannot be turned off", needed, api)
			}
		}
	}
}

// requiredAPI returns the API that Gardener needs and that is switched off with the given one:
// itself, its group, or one of its resources.
func requiredAPI(table map[string]versionRange, api string, workerless bool) string {
	needed := func(name string) bool {
		row, ok := table[name]
		return ok && (row.columns[0] == "always" || row.columns[0] == "workers" && !workerless)
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
