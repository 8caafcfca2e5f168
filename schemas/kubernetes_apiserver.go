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
	old tree
}

const (
	maxReading     = 5000
	maxWriting     = 2500
	leastTokenLife = 720 * time.Hour
	mostTokenLife  = 2160 * time.Hour
)

// kubeAPIServerFindings checks the configuration of a kube-apiserver: spec.kubernetes.kubeAPIServer
// of a Shoot or, with further fields, spec.virtualCluster.kubernetes.kubeAPIServer of a Garden.
func kubeAPIServerFindings(config tree, in apiServerContext) []finding {
	r := &report{}
	if field := config.at("enableAnonymousAuthentication"); field.set() && minorOf(in.version) >= 35 {
		r.add(field, TypeForbidden, "Kubernetes 1.35 does not have it any more; use structuredAuthentication")
	}
	r.admissionPlugins(config.at("admissionPlugins"), in.version)
	r.runtimeConfig(config.at("runtimeConfig"), in.version, in.workerless)
	r.configMapReference(config.at("auditConfig", "auditPolicy", "configMapRef"), "the audit policy")
	r.structuredAuth(config)
	r.watchCache(config.at("watchCacheSizes"), in.version)
	r.notNegative(config.at("logging", "verbosity"), config.at("logging", "httpAccessVerbosity"),
		config.at("defaultNotReadyTolerationSeconds"), config.at("defaultUnreachableTolerationSeconds"))
	r.encryption(config.at("encryptionConfig"), in.alwaysEncrypted)
	r.within(config.at("requests", "maxNonMutatingInflight"), 0, maxReading)
	r.within(config.at("requests", "maxMutatingInflight"), 0, maxWriting)
	r.serviceAccounts(config.at("serviceAccountConfig"), in.old.at("serviceAccountConfig"))
	if ttl := config.at("eventTTL"); !in.old.set() || !equal(ttl.value, in.old.at("eventTTL").value) {
		if life, ok := ttl.duration(); ok && (life < 0 || life > 24*time.Hour) {
			r.add(ttl, TypeInvalid, "%s is out of range: events are kept from 0s to 24h", ttl.text())
		}
	}
	r.minAllowed(config.at("autoscaling"), map[string]string{"cpu": "20m", "memory": "200M"})
	r.featureGates(config.at("featureGates"), in.version)
	seen := map[string]string{}
	for _, audience := range config.at("apiAudiences").items() {
		if first, double := seen[audience.text()]; double {
			r.add(audience, TypeDuplicate, "the audience %q is listed already as %s", audience.text(), first)
		} else if strings.Contains(audience.text(), ",") {
			r.add(audience, TypeInvalid, "%q has a comma; list every audience by itself", audience.text())
		} else if strings.Contains(audience.text(), `"`) {
			r.add(audience, TypeInvalid, "%s has a quotation mark, which kube-apiserver cannot read in its list of audiences", audience.text())
		}
		seen[audience.text()] = audience.path
	}
	return r.findings
}

func (r *report) structuredAuth(config tree) {
	gates := config.at("featureGates")
	for field, gate := range map[string]string{
		"structuredAuthentication": "StructuredAuthenticationConfiguration", "structuredAuthorization": "StructuredAuthorizationConfiguration",
	} {
		section := config.at(field)
		if !section.set() {
			continue
		}
		if value := gates.at(gate); value.set() && !value.is() {
			r.add(section, TypeForbidden, "needs the feature gate %s, which %s turns off", gate, value.path)
		}
		if name := section.at("configMapName"); name.set() && name.text() == "" {
			r.add(name, TypeForbidden, "must name a ConfigMap")
		}
	}
	if section := config.at("structuredAuthorization"); section.at("configMapName").text() != "" && len(section.at("kubeconfigs").items()) == 0 {
		r.add(section.at("kubeconfigs"), TypeRequired, "must name a Secret with a kubeconfig for every webhook of the authorization configuration")
	}
}

// configMapReference checks the name and the namespace of a reference, like
// ValidateAuditPolicyConfigMapReference.
func (r *report) configMapReference(reference tree, holds string) {
	if !reference.set() {
		return
	}
	name, namespace := reference.at("name"), reference.at("namespace")
	if name.text() == "" {
		r.add(name, TypeRequired, "must name the ConfigMap with %s", holds)
	} else if words := validation.IsDNS1123Subdomain(name.text()); len(words) > 0 {
		r.add(name, TypeInvalid, "%q is not the name of a ConfigMap: lower case letters, digits, '-' and '.', at most 253 characters", name.text())
	}
	if namespace.text() != "" && len(validation.IsDNS1123Label(namespace.text())) > 0 {
		r.add(namespace, TypeInvalid, "%q is not the name of a namespace: lower case letters, digits and '-', at most 63 characters", namespace.text())
	}
}

func (r *report) watchCache(sizes tree, version string) {
	if field := sizes.at("default"); field.set() && minorOf(version) >= 35 {
		r.add(field, TypeForbidden, "Kubernetes 1.35 does not have it any more; set sizes of resources instead")
	} else {
		r.notNegative(field)
	}
	for _, item := range sizes.at("resources").items() {
		r.watchCacheName(item.at("resource"), ",. #")
		r.watchCacheName(item.at("apiGroup"), ", #")
		if name := item.at("resource"); name.set() && name.text() == "" {
			r.add(name, TypeRequired, "must name the resource, such as secrets")
		}
		r.notNegative(item.at("size"))
	}
}

func (r *report) watchCacheName(name tree, refused string) {
	if text := name.text(); strings.ToLower(text) != text || strings.ContainsAny(text, refused) {
		r.add(name, TypeInvalid, "%q must be in lower case and have none of %q", text, refused)
	}
}

// encryption checks the encrypted resources and the encryption provider.
func (r *report) encryption(config tree, always []string) {
	seen := map[schema.GroupResource]string{}
	for _, item := range config.at("resources").items() {
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
			r.add(item, TypeInvalid, "the group extensions does not exist any more")
		case len(validation.IsDNS1123Label(gr.Resource)) > 0 || gr.Group != "" && len(validation.IsDNS1123Subdomain(gr.Group)) > 0:
			r.add(item, TypeInvalid, "%q is not the name of a resource such as configmaps or deployments.apps", text)
		}
		if first, double := seen[gr]; double {
			r.add(item, TypeDuplicate, "%q is listed already as %s", text, first)
		} else {
			seen[gr] = item.path
		}
		if slices.ContainsFunc(always, func(name string) bool { return schema.ParseGroupResource(name) == gr }) {
			r.add(item, TypeForbidden, "%q is always encrypted; remove it from the list", text)
		}
	}
	r.oneOf(config.at("provider", "type"), "aescbc", "aesgcm", "secretbox")
}

func (r *report) serviceAccounts(config, old tree) {
	life := config.at("maxTokenExpiration")
	switch duration, ok := life.duration(); {
	case !ok:
	case duration < 0:
		r.add(life, TypeInvalid, "%s is negative; tokens live from 720h to 2160h", life.text())
	case duration > 0 && duration < leastTokenLife, duration > mostTokenLife:
		r.add(life, TypeForbidden, "%s is out of range: tokens live from 720h (30 days) to 2160h (90 days)", life.text())
	}
	issuer := config.at("issuer")
	if issuer.set() {
		r.issuerURL(issuer)
	}
	accepted := config.at("acceptedIssuers")
	if old.set() && equal(accepted.value, old.at("acceptedIssuers").value) {
		return
	}
	seen := map[string]string{}
	for _, item := range accepted.items() {
		r.issuerURL(item)
		first, double := seen[item.text()]
		switch {
		case issuer.set() && item.text() == issuer.text():
			r.add(item, TypeInvalid, "%q is the issuer already, by %s", item.text(), issuer.path)
		case double:
			r.add(item, TypeDuplicate, "%q is listed already as %s", item.text(), first)
		default:
			seen[item.text()] = item.path
		}
	}
}

// issuerURL checks a token issuer: https, with a host, and no part that clients do not compare.
func (r *report) issuerURL(field tree) {
	parsed, err := url.Parse(field.text())
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "https":
		r.add(field, TypeInvalid, "%q is not the URL of an issuer; it must have the form https://HOST[/PATH]", field.text())
	case parsed.Fragment != "" || parsed.User != nil || parsed.RawQuery != "":
		r.add(field, TypeInvalid, "must have no user, no query and no fragment; it must have the form https://HOST[/PATH]")
	}
}

// minAllowed checks the minimums of vertical autoscaling of a control plane component. least holds
// the lowest values that Gardener accepts.
func (r *report) minAllowed(autoscaling tree, least map[string]string) {
	if !autoscaling.set() {
		return
	}
	floors := autoscaling.at("minAllowed")
	if floors.set() && len(floors.keys()) == 0 {
		r.add(floors, TypeRequired, "must have cpu or memory; or remove autoscaling")
	}
	for _, name := range floors.keys() {
		field := floors.at(name)
		if name != "cpu" && name != "memory" {
			r.add(field, TypeNotSupported, "%q is not supported, but one of \"cpu\", \"memory\"", name)
		}
		quantity, ok := field.quantity()
		if !ok {
			continue
		}
		if floor := least[name]; floor != "" && quantity.Cmp(resource.MustParse(floor)) < 0 {
			r.add(field, TypeInvalid, "%v is too small: it must be %s or more", field.value, floor)
		} else {
			r.quantities(field)
		}
	}
}
