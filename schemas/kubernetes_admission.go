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
	// types are the types that the plugin reads, newest first; empty if it needs no apiVersion and
	// kind.
	types  []configType
	fields form
	// lenient: the plugin drops unknown fields.
	lenient bool
}

type configType struct {
	apiVersion, kind string
	removed          int // minor version of Kubernetes, 0 for none
}

func (c configType) String() string { return c.kind + " of " + c.apiVersion }

// configReport separates settings that a plugin refuses from settings that it ignores.
type configReport struct {
	refused, ignored report
	lenient          bool
	minor            int
	gates            tree
}

var webhookTypes = []configType{
	{apiVersion: "apiserver.config.k8s.io/v1", kind: "WebhookAdmissionConfiguration"},
	{apiVersion: "apiserver.k8s.io/v1alpha1", kind: "WebhookAdmission", removed: 36},
}

var webhookFields = form{"kubeConfigFile": ownKubeconfig, "staticManifestsDir": staticManifests}

var pluginConfigs = map[string]pluginConfig{
	"EventRateLimit": {
		types:   []configType{{apiVersion: "eventratelimit.admission.k8s.io/v1alpha1", kind: "Configuration"}},
		fields:  form{"limits": formList(formObject(eventLimit))},
		lenient: true,
	},
	"ImagePolicyWebhook": {
		fields: form{"imagePolicy": formObject(form{
			"kubeConfigFile": ownKubeconfig, "defaultAllow": formSwitch,
			"allowTTL": formNumber(-1, 1800), "denyTTL": formNumber(-1, 1800), "retryBackoff": formNumber(-1, 300000),
		})},
		lenient: true,
	},
	"MutatingAdmissionWebhook":   {types: webhookTypes, fields: webhookFields},
	"ValidatingAdmissionWebhook": {types: webhookTypes, fields: webhookFields},
	"PodNodeSelector":            {fields: form{"podNodeSelectorPluginConfig": nodeSelectors}, lenient: true},
	"ShootDNSRewriting": {
		types:   []configType{{apiVersion: "shootdnsrewriting.admission.gardener.cloud/v1alpha1", kind: "Configuration"}},
		fields:  form{"commonSuffixes": formNames("a suffix of names, such as .example.com", suffixFaults)},
		lenient: true,
	},
	"ShootResourceReservation": {
		types:   []configType{{apiVersion: "shootresourcereservation.admission.gardener.cloud/v1alpha1", kind: "Configuration"}},
		fields:  form{"useGKEFormula": formSwitch, "selector": formAny},
		lenient: true,
	},
	"ShootTolerationRestriction": {
		types:   []configType{{apiVersion: "shoottolerationrestriction.admission.gardener.cloud/v1alpha1", kind: "Configuration"}},
		fields:  form{"defaults": formList(shootToleration), "whitelist": formList(shootToleration)},
		lenient: true,
	},
	// Gardener's own rule checks its type.
	"PodSecurity": {fields: form{
		"apiVersion": formText, "kind": formText,
		"defaults": formObject(form{
			"enforce": podSecurityLevel, "audit": podSecurityLevel, "warn": podSecurityLevel,
			"enforce-version": podSecurityVersion, "audit-version": podSecurityVersion, "warn-version": podSecurityVersion,
		}),
		"exemptions": formObject(form{
			"namespaces":     formNames("the name of a namespace", validation.IsDNS1123Label),
			"runtimeClasses": formNames("the name of a RuntimeClass", validation.IsDNS1123Subdomain),
			"usernames":      formNames("the name of a user", someText),
		}),
	}},
	"PodTolerationRestriction": {
		types:   []configType{{apiVersion: "podtolerationrestriction.admission.k8s.io/v1alpha1", kind: "Configuration"}},
		fields:  form{"default": formList(podToleration), "whitelist": formList(podToleration)},
		lenient: true,
	},
	"ResourceQuota": {
		types: []configType{
			{apiVersion: "apiserver.config.k8s.io/v1", kind: "ResourceQuotaConfiguration"},
			{apiVersion: "resourcequota.admission.k8s.io/v1beta1", kind: "Configuration"},
			{apiVersion: "resourcequota.admission.k8s.io/v1alpha1", kind: "Configuration"},
		},
		fields: form{"limitedResources": formList(limitedResource)},
	},
}

// admissionConfigurations checks the configurations of the plugins that are on.
func admissionConfigurations(config tree, version string) configReport {
	r := configReport{minor: minorOf(version), gates: config.at("featureGates")}
	for _, plugin := range config.at("admissionPlugins").items() {
		known, ok := pluginConfigs[plugin.at("name").text()]
		if !ok || plugin.at("disabled").is() {
			continue
		}
		r.lenient = known.lenient
		r.needed(plugin)
		if field := plugin.at("config"); field.set() {
			r.configuration(field, known)
		}
	}
	return r
}

// needed reports missing settings that a plugin requires.
func (r *configReport) needed(plugin tree) {
	switch config := plugin.at("config"); plugin.at("name").text() {
	case "EventRateLimit":
		if limits := config.at("limits"); !config.set() {
			r.refused.add(config, TypeRequired, "EventRateLimit has no limits without a configuration: give a %s", pluginConfigs["EventRateLimit"].types[0])
		} else if limits.value == nil || isList(limits) && len(limits.items()) == 0 {
			r.refused.add(limits, TypeRequired, "must have a limit, such as {type: Namespace, qps: 50, burst: 100}")
		}
	case "ImagePolicyWebhook":
		if secret := plugin.at("kubeconfigSecretName"); secret.text() == "" {
			r.refused.add(secret, TypeRequired, "must name a Secret with the kubeconfig of the webhook, which ImagePolicyWebhook does not start without")
		}
	}
}

func (r *configReport) configuration(config tree, known pluginConfig) {
	fields := known.fields
	if len(known.types) > 0 {
		fields = form{"apiVersion": formText, "kind": formText}
		for name, check := range known.fields {
			fields[name] = check
		}
		apiVersion, kind := config.at("apiVersion").text(), config.at("kind").text()
		allowed := slices.DeleteFunc(slices.Clone(known.types), func(t configType) bool { return t.removed > 0 && r.minor >= t.removed })
		if !slices.ContainsFunc(allowed, func(t configType) bool { return t.apiVersion == apiVersion && t.kind == kind }) {
			texts := make([]string, len(allowed))
			for i, t := range allowed {
				texts[i] = "a " + t.String()
			}
			r.refused.add(config, TypeInvalid, "must be %s, but has kind %q and apiVersion %q", strings.Join(texts, ", or "), kind, apiVersion)
			if apiVersion != "" && kind != "" {
				return
			}
		}
	}
	formObject(fields)(r, config)
}

// ownKubeconfig reports a path that the render sets.
func ownKubeconfig(r *configReport, field tree) {
	r.ignored.add(field, TypeForbidden, "has no effect: the kubeconfig is that of kubeconfigSecretName of the plugin")
}

func staticManifests(r *configReport, field tree) {
	const gate = "ManifestBasedAdmissionControlConfig"
	switch {
	case r.minor < 36:
		r.unknown(field, []string{"apiVersion", "kind", "kubeConfigFile"})
	case !r.gates.at(gate).is():
		r.refused.add(field, TypeForbidden, "needs the feature gate %s: set it to true at %s", gate, r.gates.path)
	case !strings.HasPrefix(field.text(), "/"):
		r.refused.add(field, TypeInvalid, "must be the absolute path of a folder in the container of kube-apiserver")
	}
}

const mostInt32 = 1<<31 - 1

var eventLimit = form{
	"type": formOneOf("Server", "Namespace", "User", "SourceAndObject"), "qps": formNumber(1, mostInt32), "burst": formNumber(1, mostInt32),
	"cacheSize": formNumber(0, mostInt32),
}

func limitedResource(r *configReport, field tree) {
	formObject(form{"apiGroup": formText, "resource": formText, "matchContains": formList(formText), "matchScopes": formList(formObject(form{
		"scopeName": formText, "operator": formOneOf("In", "NotIn", "Exists", "DoesNotExist"), "values": formList(formText),
	}))})(r, field)
	if name := field.at("resource"); name.value == nil || name.value == "" {
		r.refused.add(name, TypeRequired, "must name the resource that is limited, such as pods")
	}
}

// nodeSelectors checks selectors of nodes, one text for each namespace. With a wrong one
// kube-apiserver starts, but creates no pod in the namespace.
func nodeSelectors(r *configReport, field tree) {
	if _, ok := field.value.(map[string]any); !ok {
		r.wrong(field, "an object with a selector for each namespace")
		return
	}
	for _, namespace := range field.keys() {
		selector := field.at(namespace)
		if meant := suggest.Within(namespace, []string{clusterDefault}, 3); meant != "" && namespace != meant {
			r.ignored.add(selector, TypeNotSupported, "is read as the name of a namespace; did you mean %q?", meant)
		}
		if _, ok := selector.value.(string); !ok {
			r.wrong(selector, "a text such as \"env=test,zone=a\"")
		} else if _, err := labels.ConvertSelectorToLabelsMap(selector.text()); err != nil {
			r.refused.add(selector, TypeInvalid, "%q are no labels such as \"env=test,zone=a\", so that no pod could be made in the namespace", selector.text())
		}
	}
}

// clusterDefault is the selector for namespaces without their own.
const clusterDefault = "clusterDefaultNodeSelector"

func podSecurityLevel(r *configReport, field tree) {
	if field.value != "" {
		formOneOf("privileged", "baseline", "restricted")(r, field)
	}
}

var podSecurityVersions = regexp.MustCompile(`^(|latest|v1\.(0|[1-9][0-9]*))$`)

func podSecurityVersion(r *configReport, field tree) {
	if _, ok := field.value.(string); !ok {
		r.wrong(field, "a text")
	} else if !podSecurityVersions.MatchString(field.text()) {
		r.refused.add(field, TypeInvalid, "%q is no version: it must be latest, or a minor version such as v1.34", field.text())
	} else if minor := minorOf(strings.TrimPrefix(field.text(), "v")); r.minor > 0 && minor > r.minor {
		r.ignored.add(field, TypeInvalid, "%s is above the version of the cluster, which has the standards up to v1.%d only", field.text(), r.minor)
	}
}

// shootToleration checks a toleration of Shoots: a taint of a Seed has a key, and may have a value.
func shootToleration(r *configReport, field tree) {
	formObject(form{"key": formText, "value": formText})(r, field)
	if key := field.at("key"); key.text() == "" {
		r.refused.add(key, TypeRequired, "must be the key of a taint of Seeds")
	}
}

// dottedSuffix is also the form of CoreDNS suffixes in Shoots (rule shoot/dns-rewriting).
var dottedSuffix = regexp.MustCompile(`^[.]?([a-z0-9]([-a-z0-9]*[a-z0-9])?[.])+[a-z0-9]([-a-z0-9]*[a-z0-9])?[.]?$`)

func suffixFaults(suffix string) []string {
	if !dottedSuffix.MatchString(suffix) {
		return []string{"it must be a domain with a dot that is not its first character"}
	}
	return nil
}

func someText(name string) []string {
	if name == "" {
		return []string{"must not be empty"}
	}
	return nil
}

func podToleration(r *configReport, field tree) {
	formObject(form{"key": formText, "operator": formOneOf("", "Equal", "Exists"), "value": formText, "effect": formOneOf("", "NoSchedule", "PreferNoSchedule", "NoExecute"),
		"tolerationSeconds": formNumber(-(1 << 53), 1<<53)})(r, field)
	key, operator, value := field.at("key"), field.at("operator"), field.at("value")
	switch exists := operator.text() == "Exists"; {
	case key.text() == "" && !exists:
		r.refused.add(operator, TypeInvalid, "must be Exists without a key, which stands for all taints")
	case exists && value.text() != "":
		r.refused.add(value, TypeInvalid, "must not be set, because the operator is Exists")
	case !exists && len(validation.IsValidLabelValue(value.text())) > 0:
		r.refused.add(value, TypeInvalid, "%q has not the form of the value of a label", value.text())
	}
	if words := validation.IsQualifiedName(key.text()); key.text() != "" && len(words) > 0 {
		r.refused.add(key, TypeInvalid, "%q is not the key of a taint: %s", key.text(), words[0])
	}
	if seconds := field.at("tolerationSeconds"); seconds.set() && field.at("effect").text() != "NoExecute" {
		r.refused.add(field.at("effect"), TypeInvalid, "must be NoExecute, because %s is set", seconds.path)
	}
}
