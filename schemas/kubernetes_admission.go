// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// A plugin reads its configuration when kube-apiserver starts. Gardener checks only the type of the
// PodSecurity configuration, so it accepts wrong ones, and no new kube-apiserver starts.

// pluginConfig describes valid configurations of an admission plugin. Source: the packages of the
// plugins in k8s.io/kubernetes/plugin/pkg/admission, k8s.io/apiserver/pkg/admission/plugin,
// k8s.io/pod-security-admission and Gardener's plugin/pkg/shoot.
type pluginConfig struct {
	// types are the types that the plugin reads, newest first; they are empty if it needs no
	// apiVersion and kind.
	types  []pluginConfigType
	fields fieldChecks
	// lenient means that the plugin drops unknown fields.
	lenient bool
}

type pluginConfigType struct {
	apiVersion, kind string
	removed          int // minor version of Kubernetes, 0 for none
}

func (c pluginConfigType) String() string { return c.kind + " of " + c.apiVersion }

// pluginReport separates settings that a plugin refuses from settings that it ignores.
type pluginReport struct {
	rejected, ignored findingCollector
	lenient           bool
	minor             int
	featureGates      fieldValue
}

var webhookConfigTypes = []pluginConfigType{
	{apiVersion: "apiserver.config.k8s.io/v1", kind: "WebhookAdmissionConfiguration"},
	{apiVersion: "apiserver.k8s.io/v1alpha1", kind: "WebhookAdmission", removed: 36},
}

var webhookConfigChecks = fieldChecks{"kubeConfigFile": checkKubeconfigPath, "staticManifestsDir": checkStaticManifests}

var pluginConfigs = map[string]pluginConfig{
	"EventRateLimit": {
		types:   []pluginConfigType{{apiVersion: "eventratelimit.admission.k8s.io/v1alpha1", kind: "Configuration"}},
		fields:  fieldChecks{"limits": listCheck(objectCheck(eventLimitChecks))},
		lenient: true,
	},
	"ImagePolicyWebhook": {
		fields: fieldChecks{"imagePolicy": objectCheck(fieldChecks{
			"kubeConfigFile": checkKubeconfigPath, "defaultAllow": checkBooleanValue,
			"allowTTL": numberCheck(-1, 1800), "denyTTL": numberCheck(-1, 1800), "retryBackoff": numberCheck(-1, 300000),
		})},
		lenient: true,
	},
	"MutatingAdmissionWebhook":   {types: webhookConfigTypes, fields: webhookConfigChecks},
	"ValidatingAdmissionWebhook": {types: webhookConfigTypes, fields: webhookConfigChecks},
	"PodNodeSelector":            {fields: fieldChecks{"podNodeSelectorPluginConfig": checkNodeSelectors}, lenient: true},
	"ShootDNSRewriting": {
		types:   []pluginConfigType{{apiVersion: "shootdnsrewriting.admission.gardener.cloud/v1alpha1", kind: "Configuration"}},
		fields:  fieldChecks{"commonSuffixes": distinctNamesCheck("a suffix of names, such as .example.com", dnsSuffixProblems)},
		lenient: true,
	},
	"ShootResourceReservation": {
		types:   []pluginConfigType{{apiVersion: "shootresourcereservation.admission.gardener.cloud/v1alpha1", kind: "Configuration"}},
		fields:  fieldChecks{"useGKEFormula": checkBooleanValue, "selector": acceptAny},
		lenient: true,
	},
	"ShootTolerationRestriction": {
		types:   []pluginConfigType{{apiVersion: "shoottolerationrestriction.admission.gardener.cloud/v1alpha1", kind: "Configuration"}},
		fields:  fieldChecks{"defaults": listCheck(checkShootTolerationSetting), "whitelist": listCheck(checkShootTolerationSetting)},
		lenient: true,
	},
	// Gardener's own rule checks its type.
	"PodSecurity": {fields: fieldChecks{
		"apiVersion": checkTextValue, "kind": checkTextValue,
		"defaults": objectCheck(fieldChecks{
			"enforce": checkPodSecurityLevel, "audit": checkPodSecurityLevel, "warn": checkPodSecurityLevel,
			"enforce-version": checkPodSecurityVersion, "audit-version": checkPodSecurityVersion, "warn-version": checkPodSecurityVersion,
		}),
		"exemptions": objectCheck(fieldChecks{
			"namespaces":     distinctNamesCheck("the name of a namespace", validation.IsDNS1123Label),
			"runtimeClasses": distinctNamesCheck("the name of a RuntimeClass", validation.IsDNS1123Subdomain),
			"usernames":      distinctNamesCheck("the name of a user", emptyTextProblems),
		}),
	}},
	"PodTolerationRestriction": {
		types:   []pluginConfigType{{apiVersion: "podtolerationrestriction.admission.k8s.io/v1alpha1", kind: "Configuration"}},
		fields:  fieldChecks{"default": listCheck(checkPodTolerationSetting), "whitelist": listCheck(checkPodTolerationSetting)},
		lenient: true,
	},
	"ResourceQuota": {
		types: []pluginConfigType{
			{apiVersion: "apiserver.config.k8s.io/v1", kind: "ResourceQuotaConfiguration"},
			{apiVersion: "resourcequota.admission.k8s.io/v1beta1", kind: "Configuration"},
			{apiVersion: "resourcequota.admission.k8s.io/v1alpha1", kind: "Configuration"},
		},
		fields: fieldChecks{"limitedResources": listCheck(checkLimitedResource)},
	},
}

// admissionConfigurations checks the configurations of the plugins that are on.
func admissionConfigurations(config fieldValue, version string) pluginReport {
	r := pluginReport{minor: minorOf(version), featureGates: config.lookup("featureGates")}
	for _, plugin := range config.lookup("admissionPlugins").items() {
		known, ok := pluginConfigs[plugin.lookup("name").text()]
		if !ok || plugin.lookup("disabled").isTrue() {
			continue
		}
		r.lenient = known.lenient
		r.checkRequired(plugin)
		if field := plugin.lookup("config"); field.isSet() {
			r.checkConfiguration(field, known)
		}
	}
	return r
}

// checkRequired reports missing settings that a plugin requires.
func (r *pluginReport) checkRequired(plugin fieldValue) {
	switch config := plugin.lookup("config"); plugin.lookup("name").text() {
	case "EventRateLimit":
		if limits := config.lookup("limits"); !config.isSet() {
			r.rejected.add(config, TypeRequired, "EventRateLimit has no limits without a configuration: give a %s", pluginConfigs["EventRateLimit"].types[0])
		} else if limits.value == nil || isList(limits) && len(limits.items()) == 0 {
			r.rejected.add(limits, TypeRequired, "must have a limit, such as {type: Namespace, qps: 50, burst: 100}")
		}
	case "ImagePolicyWebhook":
		if secret := plugin.lookup("kubeconfigSecretName"); secret.text() == "" {
			r.rejected.add(secret, TypeRequired, "must name a Secret with the kubeconfig of the webhook; ImagePolicyWebhook does not start without it")
		}
	}
}

func (r *pluginReport) checkConfiguration(config fieldValue, known pluginConfig) {
	fields := known.fields
	if len(known.types) > 0 {
		fields = fieldChecks{"apiVersion": checkTextValue, "kind": checkTextValue}
		for name, check := range known.fields {
			fields[name] = check
		}
		apiVersion, kind := config.lookup("apiVersion").text(), config.lookup("kind").text()
		allowed := slices.DeleteFunc(slices.Clone(known.types), func(t pluginConfigType) bool { return t.removed > 0 && r.minor >= t.removed })
		if !slices.ContainsFunc(allowed, func(t pluginConfigType) bool { return t.apiVersion == apiVersion && t.kind == kind }) {
			texts := make([]string, len(allowed))
			for i, t := range allowed {
				texts[i] = "a " + t.String()
			}
			r.rejected.add(config, TypeInvalid, "must be %s, but has kind %q and apiVersion %q", strings.Join(texts, ", or "), kind, apiVersion)
			if apiVersion != "" && kind != "" {
				return
			}
		}
	}
	objectCheck(fields)(r, config)
}

// checkKubeconfigPath reports a path that the render sets.
func checkKubeconfigPath(r *pluginReport, field fieldValue) {
	r.ignored.add(field, TypeForbidden, "has no effect: kubeconfigSecretName of the plugin sets the kubeconfig")
}

func checkStaticManifests(r *pluginReport, field fieldValue) {
	const gate = "ManifestBasedAdmissionControlConfig"
	switch {
	case r.minor < 36:
		r.addUnknownField(field, []string{"apiVersion", "kind", "kubeConfigFile"})
	case !r.featureGates.lookup(gate).isTrue():
		r.rejected.add(field, TypeForbidden, "needs the feature gate %s: set it to true at %s", gate, r.featureGates.path)
	case !strings.HasPrefix(field.text(), "/"):
		r.rejected.add(field, TypeInvalid, "must be the absolute path of a folder in the container of kube-apiserver")
	}
}

const maxInt32 = 1<<31 - 1

var eventLimitChecks = fieldChecks{
	"type": oneOfCheck("Server", "Namespace", "User", "SourceAndObject"), "qps": numberCheck(1, maxInt32), "burst": numberCheck(1, maxInt32),
	"cacheSize": numberCheck(0, maxInt32),
}

func checkLimitedResource(r *pluginReport, field fieldValue) {
	objectCheck(fieldChecks{"apiGroup": checkTextValue, "resource": checkTextValue, "matchContains": listCheck(checkTextValue), "matchScopes": listCheck(objectCheck(fieldChecks{
		"scopeName": checkTextValue, "operator": oneOfCheck("In", "NotIn", "Exists", "DoesNotExist"), "values": listCheck(checkTextValue),
	}))})(r, field)
	if name := field.lookup("resource"); name.value == nil || name.value == "" {
		r.rejected.add(name, TypeRequired, "must name the resource that is limited, such as pods")
	}
}

// checkNodeSelectors checks selectors of nodes, one text for each namespace. With a wrong one
// kube-apiserver starts, but creates no pod in the namespace.
func checkNodeSelectors(r *pluginReport, field fieldValue) {
	if _, ok := field.value.(map[string]any); !ok {
		r.addTypeError(field, "an object with a selector for each namespace")
		return
	}
	for _, namespace := range field.keys() {
		selector := field.lookup(namespace)
		if meant := suggest.ClosestWithin(namespace, []string{clusterDefaultSelectorKey}, 3); meant != "" && namespace != meant {
			r.ignored.add(selector, TypeNotSupported, "is read as the name of a namespace; did you mean %q?", meant)
		}
		if _, ok := selector.value.(string); !ok {
			r.addTypeError(selector, "a text such as \"env=test,zone=a\"")
		} else if _, err := labels.ConvertSelectorToLabelsMap(selector.text()); err != nil {
			r.rejected.add(selector, TypeInvalid, "%q is not a list of labels such as \"env=test,zone=a\", so no pod could be created in the namespace", selector.text())
		}
	}
}

// clusterDefaultSelectorKey is the selector for namespaces without their own.
const clusterDefaultSelectorKey = "clusterDefaultNodeSelector"

func checkPodSecurityLevel(r *pluginReport, field fieldValue) {
	if field.value != "" {
		oneOfCheck("privileged", "baseline", "restricted")(r, field)
	}
}

var podSecurityVersionPattern = regexp.MustCompile(`^(|latest|v1\.(0|[1-9][0-9]*))$`)

func checkPodSecurityVersion(r *pluginReport, field fieldValue) {
	if _, ok := field.value.(string); !ok {
		r.addTypeError(field, "a text")
	} else if !podSecurityVersionPattern.MatchString(field.text()) {
		r.rejected.add(field, TypeInvalid, "%q is not a version: it must be latest, or a minor version such as v1.34", field.text())
	} else if minor := minorOf(strings.TrimPrefix(field.text(), "v")); r.minor > 0 && minor > r.minor {
		r.ignored.add(field, TypeInvalid, "%s is above the version of the cluster, which has only the standards up to v1.%d", field.text(), r.minor)
	}
}

// checkShootTolerationSetting checks a toleration of Shoots: a taint of a Seed has a key, and may
// have a value.
func checkShootTolerationSetting(r *pluginReport, field fieldValue) {
	objectCheck(fieldChecks{"key": checkTextValue, "value": checkTextValue})(r, field)
	if key := field.lookup("key"); key.text() == "" {
		r.rejected.add(key, TypeRequired, "must be the key of a taint of Seeds")
	}
}

// dnsSuffixPattern is also the form of CoreDNS suffixes in Shoots (rule shoot/dns-rewriting).
var dnsSuffixPattern = regexp.MustCompile(`^[.]?([a-z0-9]([-a-z0-9]*[a-z0-9])?[.])+[a-z0-9]([-a-z0-9]*[a-z0-9])?[.]?$`)

func dnsSuffixProblems(suffix string) []string {
	if !dnsSuffixPattern.MatchString(suffix) {
		return []string{"it must be a domain with a dot that is not its first character"}
	}
	return nil
}

func emptyTextProblems(name string) []string {
	if name == "" {
		return []string{"must not be empty"}
	}
	return nil
}

func checkPodTolerationSetting(r *pluginReport, field fieldValue) {
	objectCheck(fieldChecks{"key": checkTextValue, "operator": oneOfCheck("", "Equal", "Exists"), "value": checkTextValue, "effect": oneOfCheck("", "NoSchedule", "PreferNoSchedule", "NoExecute"),
		"tolerationSeconds": numberCheck(-(1 << 53), 1<<53)})(r, field)
	key, operator, value := field.lookup("key"), field.lookup("operator"), field.lookup("value")
	switch exists := operator.text() == "Exists"; {
	case key.text() == "" && !exists:
		r.rejected.add(operator, TypeInvalid, "must be Exists without a key, which stands for all taints")
	case exists && value.text() != "":
		r.rejected.add(value, TypeInvalid, "must not be set, because the operator is Exists")
	case !exists && len(validation.IsValidLabelValue(value.text())) > 0:
		r.rejected.add(value, TypeInvalid, "%q does not have the form of a label value", value.text())
	}
	if words := validation.IsQualifiedName(key.text()); key.text() != "" && len(words) > 0 {
		r.rejected.add(key, TypeInvalid, "%q is not the key of a taint: %s", key.text(), words[0])
	}
	if seconds := field.lookup("tolerationSeconds"); seconds.isSet() && field.lookup("effect").text() != "NoExecute" {
		r.rejected.add(field.lookup("effect"), TypeInvalid, "must be NoExecute, because %s is set", seconds.path)
	}
}
