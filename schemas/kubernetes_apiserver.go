// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// apiServerContext is the input of the rules about a kube-apiserver besides its configuration.
type apiServerContext struct {
	version    string // Kubernetes version
	workerless bool   // a cluster without nodes needs fewer APIs
	// alwaysEncrypted lists the resources, as "resource" or "resource.group", that must not be
	// listed.
	alwaysEncrypted []string
	// old is the configuration before the change: upstream accepts wrong issuers and lifetimes of
	// events that existed before.
	old fieldValue
}

const (
	maxNonMutatingRequests = 5000
	maxMutatingRequests    = 2500
	minTokenLifetime       = 720 * time.Hour
	maxTokenLifetime       = 2160 * time.Hour
)

// checkKubeAPIServer checks the configuration of a kube-apiserver: spec.kubernetes.kubeAPIServer
// of a Shoot or, with further fields, spec.virtualCluster.kubernetes.kubeAPIServer of a Garden.
func checkKubeAPIServer(config fieldValue, in apiServerContext) []finding {
	r := &findingCollector{}
	if field := config.lookup("enableAnonymousAuthentication"); field.isSet() && minorOf(in.version) >= 35 {
		r.add(field, TypeForbidden, "Kubernetes 1.35 no longer has it; use structuredAuthentication")
	}
	r.checkAdmissionPlugins(config.lookup("admissionPlugins"), in.version)
	r.checkRuntimeConfig(config.lookup("runtimeConfig"), in.version, in.workerless)
	r.checkConfigMapReference(config.lookup("auditConfig", "auditPolicy", "configMapRef"), "the audit policy")
	r.checkStructuredAuth(config)
	r.checkWatchCache(config.lookup("watchCacheSizes"), in.version)
	r.requireNonNegative(config.lookup("logging", "verbosity"), config.lookup("logging", "httpAccessVerbosity"),
		config.lookup("defaultNotReadyTolerationSeconds"), config.lookup("defaultUnreachableTolerationSeconds"))
	r.checkEncryption(config.lookup("encryptionConfig"), in.alwaysEncrypted)
	r.requireRange(config.lookup("requests", "maxNonMutatingInflight"), 0, maxNonMutatingRequests)
	r.requireRange(config.lookup("requests", "maxMutatingInflight"), 0, maxMutatingRequests)
	r.checkServiceAccounts(config.lookup("serviceAccountConfig"), in.old.lookup("serviceAccountConfig"))
	if ttl := config.lookup("eventTTL"); !in.old.isSet() || !isEqual(ttl.value, in.old.lookup("eventTTL").value) {
		if life, ok := ttl.duration(); ok && (life < 0 || life > 24*time.Hour) {
			r.add(ttl, TypeInvalid, "%s is out of range: it must be between 0s and 24h", ttl.text())
		}
	}
	r.checkMinAllowed(config.lookup("autoscaling"), map[string]string{"cpu": "20m", "memory": "200M"})
	r.checkFeatureGates(config.lookup("featureGates"), in.version)
	seen := map[string]string{}
	for _, audience := range config.lookup("apiAudiences").items() {
		if first, double := seen[audience.text()]; double {
			r.add(audience, TypeDuplicate, "the audience %q is already listed as %s", audience.text(), first)
		} else if strings.Contains(audience.text(), ",") {
			r.add(audience, TypeInvalid, "%q has a comma; list every audience separately", audience.text())
		} else if strings.Contains(audience.text(), `"`) {
			r.add(audience, TypeInvalid, "%s has a quotation mark, which kube-apiserver cannot read in its list of audiences", audience.text())
		}
		seen[audience.text()] = audience.path
	}
	return r.findings
}

func (r *findingCollector) checkStructuredAuth(config fieldValue) {
	gates := config.lookup("featureGates")
	for field, gate := range map[string]string{
		"structuredAuthentication": "StructuredAuthenticationConfiguration", "structuredAuthorization": "StructuredAuthorizationConfiguration",
	} {
		section := config.lookup(field)
		if !section.isSet() {
			continue
		}
		if value := gates.lookup(gate); value.isSet() && !value.isTrue() {
			r.add(section, TypeForbidden, "needs the feature gate %s, which %s turns off", gate, value.path)
		}
		if name := section.lookup("configMapName"); name.isSet() && name.text() == "" {
			r.add(name, TypeForbidden, "must name a ConfigMap")
		}
	}
	if section := config.lookup("structuredAuthorization"); section.lookup("configMapName").text() != "" && len(section.lookup("kubeconfigs").items()) == 0 {
		r.add(section.lookup("kubeconfigs"), TypeRequired, "must name a Secret with a kubeconfig for every webhook of the authorization configuration")
	}
}

// checkConfigMapReference checks the name and the namespace of a reference, like
// ValidateAuditPolicyConfigMapReference.
func (r *findingCollector) checkConfigMapReference(reference fieldValue, holds string) {
	if !reference.isSet() {
		return
	}
	name, namespace := reference.lookup("name"), reference.lookup("namespace")
	if name.text() == "" {
		r.add(name, TypeRequired, "must name the ConfigMap with %s", holds)
	} else if words := validation.IsDNS1123Subdomain(name.text()); len(words) > 0 {
		r.add(name, TypeInvalid, "%q is not the name of a ConfigMap: lower case letters, digits, '-' and '.', at most 253 characters", name.text())
	}
	if namespace.text() != "" && len(validation.IsDNS1123Label(namespace.text())) > 0 {
		r.add(namespace, TypeInvalid, "%q is not the name of a namespace: lower case letters, digits and '-', at most 63 characters", namespace.text())
	}
}

func (r *findingCollector) checkWatchCache(sizes fieldValue, version string) {
	if field := sizes.lookup("default"); field.isSet() && minorOf(version) >= 35 {
		r.add(field, TypeForbidden, "Kubernetes 1.35 no longer has it; set sizes of resources instead")
	} else {
		r.requireNonNegative(field)
	}
	for _, item := range sizes.lookup("resources").items() {
		r.checkWatchCacheName(item.lookup("resource"), ",. #")
		r.checkWatchCacheName(item.lookup("apiGroup"), ", #")
		if name := item.lookup("resource"); name.isSet() && name.text() == "" {
			r.add(name, TypeRequired, "must name the resource, such as secrets")
		}
		r.requireNonNegative(item.lookup("size"))
	}
}

func (r *findingCollector) checkWatchCacheName(name fieldValue, refused string) {
	if text := name.text(); strings.ToLower(text) != text || strings.ContainsAny(text, refused) {
		r.add(name, TypeInvalid, "%q must be in lower case and have none of %q", text, refused)
	}
}

// checkEncryption checks the encrypted resources and the encryption provider.
func (r *findingCollector) checkEncryption(config fieldValue, always []string) {
	seen := map[schema.GroupResource]string{}
	for _, item := range config.lookup("resources").items() {
		text := item.text()
		gr := schema.ParseGroupResource(text)
		switch {
		case strings.ToLower(text) != text:
			r.add(item, TypeInvalid, "%q must be in lower case", text)
		case slices.Contains([]string{"apiserveripinfo", "serviceipallocations", "servicenodeportallocations"}, text):
			r.add(item, TypeInvalid, "%q has no REST API and cannot be encrypted", text)
		case strings.HasSuffix(text, "."):
			r.add(item, TypeInvalid, "%q must not end with a dot; write %q", text, strings.TrimSuffix(text, "."))
		case strings.Contains(text, "*"):
			r.add(item, TypeInvalid, "%q has a wildcard; list every resource by its name", text)
		case gr.Group == "events.k8s.io":
			r.add(item, TypeInvalid, "events are stored in the core group; write \"events\"")
		case gr.Group == "extensions":
			r.add(item, TypeInvalid, "the group extensions no longer exists")
		case len(validation.IsDNS1123Label(gr.Resource)) > 0 || gr.Group != "" && len(validation.IsDNS1123Subdomain(gr.Group)) > 0:
			r.add(item, TypeInvalid, "%q is not the name of a resource such as configmaps or deployments.apps", text)
		}
		if first, double := seen[gr]; double {
			r.add(item, TypeDuplicate, "%q is already listed as %s", text, first)
		} else {
			seen[gr] = item.path
		}
		if slices.ContainsFunc(always, func(name string) bool { return schema.ParseGroupResource(name) == gr }) {
			r.add(item, TypeForbidden, "%q is always encrypted; remove it from the list", text)
		}
	}
	r.requireOneOf(config.lookup("provider", "type"), "aescbc", "aesgcm", "secretbox")
}

func (r *findingCollector) checkServiceAccounts(config, old fieldValue) {
	life := config.lookup("maxTokenExpiration")
	switch duration, ok := life.duration(); {
	case !ok:
	case duration < 0:
		r.add(life, TypeInvalid, "%s is negative; tokens live from 720h to 2160h", life.text())
	case duration > 0 && duration < minTokenLifetime, duration > maxTokenLifetime:
		r.add(life, TypeForbidden, "%s is out of range: tokens live from 720h (30 days) to 2160h (90 days)", life.text())
	}
	issuer := config.lookup("issuer")
	if issuer.isSet() {
		r.issuerURL(issuer)
	}
	accepted := config.lookup("acceptedIssuers")
	if old.isSet() && isEqual(accepted.value, old.lookup("acceptedIssuers").value) {
		return
	}
	seen := map[string]string{}
	for _, item := range accepted.items() {
		r.issuerURL(item)
		first, double := seen[item.text()]
		switch {
		case issuer.isSet() && item.text() == issuer.text():
			r.add(item, TypeInvalid, "%q is already the issuer, by %s", item.text(), issuer.path)
		case double:
			r.add(item, TypeDuplicate, "%q is already listed as %s", item.text(), first)
		default:
			seen[item.text()] = item.path
		}
	}
}

// issuerURL checks a token issuer: https, with a host, and no part that clients do not compare.
func (r *findingCollector) issuerURL(field fieldValue) {
	parsed, err := url.Parse(field.text())
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "https":
		r.add(field, TypeInvalid, "%q is not the URL of an issuer; it must have the form https://HOST[/PATH]", field.text())
	case parsed.Fragment != "" || parsed.User != nil || parsed.RawQuery != "":
		r.add(field, TypeInvalid, "must have no user, no query and no fragment; it must have the form https://HOST[/PATH]")
	}
}

// checkMinAllowed checks the minimums of vertical autoscaling of a control plane component. least
// holds the lowest values that Gardener accepts.
func (r *findingCollector) checkMinAllowed(autoscaling fieldValue, least map[string]string) {
	if !autoscaling.isSet() {
		return
	}
	floors := autoscaling.lookup("minAllowed")
	if floors.isSet() && len(floors.keys()) == 0 {
		r.add(floors, TypeRequired, "must have cpu or memory; or remove autoscaling")
	}
	for _, name := range floors.keys() {
		field := floors.lookup(name)
		if name != "cpu" && name != "memory" {
			r.add(field, TypeNotSupported, "%q is not supported; use one of \"cpu\", \"memory\"", name)
		}
		quantity, ok := field.quantity()
		if !ok {
			continue
		}
		if floor := least[name]; floor != "" && quantity.Cmp(resource.MustParse(floor)) < 0 {
			r.add(field, TypeInvalid, "%v is too small: it must be %s or more", field.value, floor)
		} else {
			r.requireNonNegativeQuantities(field)
		}
	}
}
