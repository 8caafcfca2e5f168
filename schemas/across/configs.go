package across

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/apis/audit"
	auditinstall "k8s.io/apiserver/pkg/apis/audit/install"
	auditvalidation "k8s.io/apiserver/pkg/apis/audit/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/requests"
)

// Where kube-apiserver of the virtual garden, and gardener-apiserver, are configured.
const (
	gardenKube = "spec.virtualCluster.kubernetes.kubeAPIServer"
	gardenAPI  = "spec.virtualCluster.gardener.gardenerAPIServer"

	gardenDashboard = "spec.virtualCluster.gardener.gardenerDashboard"
	gardenDiscovery = "spec.virtualCluster.gardener.gardenerDiscoveryServer"
	shootKube       = "spec.kubernetes.kubeAPIServer"
	policyRef       = ".auditConfig.auditPolicy.configMapRef"
)

// The keys of ConfigMaps with configuration of an API server, and with that of the dashboard.
const (
	keyPolicy = "policy"
	keyConfig = "config.yaml"

	keyFrontend = "frontend-config.yaml"
)

// config is what a ConfigMap holds, read once.
type config struct {
	object runtime.Object
	// absent: there is no such key.
	absent   bool
	problems problems
}

// problem is what is wrong in the text of a ConfigMap, at a field of it, "" for all of it.
type problem struct {
	field   string
	typ     schemas.Type
	message string
	// warning: the process reads it, and does something else than was most likely meant. Taken: the
	// process reads it, too, and it is wrong.
	warning, taken bool
}

type problems []problem

// faults are the problems that the process does not start with.
func (p problems) faults() problems {
	return slices.DeleteFunc(slices.Clone(p), func(one problem) bool { return one.warning || one.taken })
}

// Error implements error.
func (p problems) Error() string {
	var words []string
	for _, one := range p {
		words = append(words, strings.TrimPrefix(one.field+": "+one.message, ": "))
	}
	return strings.Join(words, "; ")
}

func wrong(format string, args ...any) problems {
	return problems{{typ: schemas.TypeInvalid, message: fmt.Sprintf(format, args...)}}
}

// configOf reads the configuration in the ConfigMap that a field names, and reports what is wrong
// with it where it is written. It gives nil then, and for what the landscape does not have.
func (c *check) configOf(fieldName, name, key string, read func(string) (runtime.Object, problems)) runtime.Object {
	in := c.configMapOf(name)
	if in == nil {
		return nil
	}
	id := configKey{identityOf(in), fieldKind(fieldName)}
	known, ok := c.configs[id]
	if !ok {
		if content := text(in.Content().Object, "data", key); content != "" {
			known.object, known.problems = read(content)
		} else {
			known.absent = true
		}
		c.configs[id] = known
	}
	if known.absent {
		c.report(fieldName, schemas.TypeInvalid, "%s has no key %q", place(in), key)
		return nil
	}
	broken := false
	for _, p := range known.problems {
		c.reportAbout(in, inKey(key, p.field), p.typ, "%s", p.message)
		if p.warning {
			c.found[len(c.found)-1].Severity = schemas.SeverityWarning
		}
		broken = broken || !p.warning
	}
	if broken {
		return nil
	}
	return known.object
}

// configMapOf is the ConfigMap of that name beside the object, nil if there is none.
func (c *check) configMapOf(name string) *schemas.Input {
	if name == "" {
		return nil
	}
	return c.find(identity{kindConfigMap, cmp.Or(c.namespace(), gardencorev1beta1.GardenNamespace), name})
}

// inKey is the path of a field of the configuration under a key of a ConfigMap.
func inKey(key, field string) string {
	path := fieldpath.Path{"data", fieldpath.Key(key)}.String()
	if field == "" {
		return path
	}
	return path + "." + field
}

// configKey tells configurations apart: a ConfigMap may be read as several.
type configKey struct {
	identity
	as string
}

// fieldKind is what is read: the name of the last but one field, such as structuredAuthentication.
func fieldKind(fieldName string) string {
	steps := strings.Split(fieldName, ".")
	return steps[max(0, len(steps)-2)]
}

// auditPolicies: the audit policy of each API server is one. Source:
// pkg/admissioncontroller/webhook/admission/auditpolicy, pkg/operator/webhook/validation/garden.
func auditPolicies(servers ...string) func(*check) {
	return func(c *check) {
		for _, server := range servers {
			at := server + policyRef + ".name"
			c.configOf(at, text(c.object(), strings.Split(at, ".")...), keyPolicy, readAuditPolicy)
		}
	}
}

// frontendConfig: what is handed on to the dashboard can be read. Source:
// pkg/operator/controller/garden/garden/components.go.
func frontendConfig(c *check) {
	const at = gardenDashboard + ".frontendConfigMapRef.name"
	c.configOf(at, text(c.object(), strings.Split(at, ".")...), keyFrontend, readFrontend)
}

// structuredAuthentication: the configuration is one, and no issuer in it is that of the API server
// itself. Source: pkg/admissioncontroller/webhook/admission/authenticationconfig.
func structuredAuthentication(server string) func(*check) {
	return func(c *check) {
		at := server + ".structuredAuthentication.configMapName"
		authentication, ok := c.configOf(at, text(c.object(), strings.Split(at, ".")...), keyConfig, readAuthentication).(*apiserver.AuthenticationConfiguration)
		if !ok {
			return
		}
		if issuer := text(c.object(), strings.Split(gardenDashboard+".oidcConfig.issuerURL", ".")...); issuer != "" && server == gardenKube &&
			!slices.ContainsFunc(authentication.JWT, func(jwt apiserver.JWTAuthenticator) bool { return jwt.Issuer.URL == issuer }) {
			c.report(gardenDashboard+".oidcConfig.issuerURL", schemas.TypeInvalid, "kube-apiserver accepts no tokens of %q, as %s has no issuer with this url, so that nobody gets in by the dashboard", issuer, place(c.configMapOf(text(c.object(), strings.Split(at, ".")...))))
			c.found[len(c.found)-1].Severity = schemas.SeverityWarning
		}
		accounts := table(c.object(), strings.Split(server+".serviceAccountConfig", ".")...)
		own := append(texts(list(accounts, "acceptedIssuers")), text(accounts, "issuer"))
		in := c.configMapOf(text(c.object(), strings.Split(at, ".")...))
		for i, jwt := range authentication.JWT {
			if slices.Contains(own, jwt.Issuer.URL) {
				c.reportAbout(in, inKey(keyConfig, fmt.Sprintf("jwt[%d].issuer.url", i)), schemas.TypeInvalid, "%q issues the tokens of service accounts of %s (%s.serviceAccountConfig); name another issuer", jwt.Issuer.URL, place(c.in), server)
			}
		}
	}
}

// structuredAuthorization: the configuration is one, Gardener fills in how webhooks are reached,
// and each of them has a kubeconfig. Source:
// pkg/admissioncontroller/webhook/admission/authorizationconfig.
func structuredAuthorization(server string) func(*check) {
	return func(c *check) {
		at := server + ".structuredAuthorization.configMapName"
		authorization, ok := c.configOf(at, text(c.object(), strings.Split(at, ".")...), keyConfig, readAuthorization).(*apiserver.AuthorizationConfiguration)
		if !ok {
			return
		}
		var named []string
		each(c.object(), server+".structuredAuthorization.kubeconfigs[].authorizerName", func(path string, value any) {
			name := fmt.Sprint(value)
			if slices.Contains(named, name) {
				c.report(path, schemas.TypeDuplicate, "the authorizer %q has a kubeconfig already", name)
			}
			named = append(named, name)
		})
		for _, a := range authorization.Authorizers {
			if a.Type == apiserver.TypeWebhook && !slices.Contains(named, a.Name) {
				c.report(server+".structuredAuthorization.kubeconfigs", schemas.TypeRequired, "must have an entry with authorizerName %q, which is a webhook of the configuration", a.Name)
			}
		}
	}
}

// decoders read the configuration files of API servers: as they do, unknown fields are refused in
// all but audit policies.
type decoders struct{ audit, apiserver runtime.Decoder }

var fileDecoders = sync.OnceValue(func() decoders {
	policies, configs := runtime.NewScheme(), runtime.NewScheme()
	auditinstall.Install(policies)
	apiserverinstall.Install(configs)
	return decoders{
		audit:     serializer.NewCodecFactory(policies).UniversalDecoder(),
		apiserver: serializer.NewCodecFactory(configs, serializer.EnableStrict).UniversalDecoder(),
	}
})

func readAuditPolicy(content string) (runtime.Object, problems) {
	policy, found := decoded[*audit.Policy](fileDecoders().audit, content, "a Policy of audit.k8s.io/v1")
	if len(found) > 0 {
		return nil, found
	}
	// as kube-apiserver refuses it (k8s.io/apiserver, pkg/audit/policy: LoadPolicyFromBytes)
	if len(policy.Rules) == 0 {
		return nil, problems{{field: "rules", typ: schemas.TypeRequired, message: "an audit policy has at least one rule; to log nothing: level None"}}
	}
	return policy, append(inWords(auditvalidation.ValidatePolicy(policy)), auditWords(policy)...)
}

// auditWords finds what no request has: kube-apiserver takes a rule with it, which is for nothing
// then.
func auditWords(policy *audit.Policy) problems {
	var out problems
	add := func(wrong, format string, at ...any) {
		if wrong != "" {
			out = append(out, problem{field: fmt.Sprintf(format, at...), typ: schemas.TypeNotSupported, taken: true, message: wrong})
		}
	}
	for i, rule := range policy.Rules {
		if everything := len(rule.Users)+len(rule.UserGroups)+len(rule.Verbs)+len(rule.Resources)+len(rule.Namespaces)+len(rule.NonResourceURLs) == 0; everything && i < len(policy.Rules)-1 {
			out = append(out, problem{field: fmt.Sprintf("rules[%d]", i), typ: schemas.TypeInvalid, warning: true,
				message: "is for every request, so that the rules behind it are for none: the first rule that fits counts; put it last"})
		}
		if (rule.Level == audit.LevelRequest || rule.Level == audit.LevelRequestResponse) && len(rule.NonResourceURLs) == 0 && ofSecrets(rule.Resources) && !slices.ContainsFunc(policy.Rules[:i], spareSecrets) {
			out = append(out, problem{field: fmt.Sprintf("rules[%d].level", i), typ: schemas.TypeInvalid, warning: true,
				message: fmt.Sprintf("%s writes the content of Secrets to the log; put a rule with level Metadata for secrets before it", rule.Level)})
		}
		for j, verb := range rule.Verbs {
			add(requests.Verb(verb), "rules[%d].verbs[%d]", i, j)
		}
		for j, user := range rule.Users {
			add(requests.Subject(user), "rules[%d].users[%d]", i, j)
		}
		for j, group := range rule.UserGroups {
			add(requests.Subject(group), "rules[%d].userGroups[%d]", i, j)
		}
		for j, of := range rule.Resources {
			wrong := requests.Group(of.Group)
			add(wrong, "rules[%d].resources[%d].group", i, j)
			for k, name := range of.Resources {
				if wrong == "" {
					add(requests.Resource(name, []string{of.Group}, requests.Kubernetes), "rules[%d].resources[%d].resources[%d]", i, j, k)
				}
			}
		}
	}
	return out
}

// ofSecrets reports whether resources of a rule have Secrets among them. None are all.
func ofSecrets(resources []audit.GroupResources) bool {
	return len(resources) == 0 || slices.ContainsFunc(resources, func(of audit.GroupResources) bool {
		return of.Group == "" && len(of.ResourceNames) == 0 && (len(of.Resources) == 0 || slices.Contains(of.Resources, "secrets") || slices.Contains(of.Resources, "*"))
	})
}

// spareSecrets reports whether a rule keeps the content of Secrets from the log, of some users at
// least.
func spareSecrets(rule audit.PolicyRule) bool {
	return (rule.Level == audit.LevelNone || rule.Level == audit.LevelMetadata) && len(rule.NonResourceURLs) == 0 && ofSecrets(rule.Resources)
}

func readAuthentication(content string) (runtime.Object, problems) {
	c, found := decoded[*apiserver.AuthenticationConfiguration](fileDecoders().apiserver, content, "an AuthenticationConfiguration of apiserver.config.k8s.io")
	if len(found) > 0 {
		return nil, found
	}
	out := inWords(apiservervalidation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), c, nil))
	if c.Anonymous != nil && c.Anonymous.Enabled && len(c.Anonymous.Conditions) == 0 {
		out = append(out, problem{field: "anonymous.enabled", typ: schemas.TypeInvalid, warning: true,
			message: "lets requests without credentials through for all paths; name those that are meant in anonymous.conditions, such as /livez and /readyz"})
	}
	for i, jwt := range c.JWT {
		if groups := jwt.ClaimMappings.Groups; groups.Prefix != nil && *groups.Prefix == "" && len(jwt.UserValidationRules) == 0 {
			out = append(out, problem{field: fmt.Sprintf("jwt[%d].claimMappings.groups.prefix", i), typ: schemas.TypeInvalid, warning: true,
				message: "is empty, so that the issuer can put anyone into the groups of Kubernetes, system:masters among them: set a prefix, or refuse groups that begin with system: in userValidationRules"})
		}
		// findings are sorted
		for field, prefix := range map[string]*string{"username": jwt.ClaimMappings.Username.Prefix, "groups": jwt.ClaimMappings.Groups.Prefix} {
			if prefix != nil && strings.HasPrefix(*prefix, "system:") {
				out = append(out, problem{field: fmt.Sprintf("jwt[%d].claimMappings.%s.prefix", i, field), typ: schemas.TypeInvalid, warning: true,
					message: fmt.Sprintf("%q is the beginning of the names of Kubernetes' own users and groups, which the issuer could give to anyone then", *prefix)})
			}
		}
	}
	return c, out
}

// ourAuthorizers are in every configuration of a Shoot or Garden, by their names
// (components/kubernetes/apiserver_auth.cue and those who use it).
var ourAuthorizers = [...]string{"node", "rbac", "node-agent-authorizer", "seed-authorizer", "shoot-authorizer"}

func readAuthorization(content string) (runtime.Object, problems) {
	c, found := decoded[*apiserver.AuthorizationConfiguration](fileDecoders().apiserver, content, "an AuthorizationConfiguration of apiserver.config.k8s.io")
	if len(found) > 0 {
		return nil, found
	}
	for i, a := range c.Authorizers {
		if a.Webhook == nil {
			continue
		}
		if slices.Contains(ourAuthorizers[:], strings.ToLower(a.Name)) {
			found = append(found, problem{field: fmt.Sprintf("authorizers[%d].name", i), typ: schemas.TypeInvalid, message: fmt.Sprintf("%q is the name of an authorizer that is there without it", a.Name)})
		}
		if a.Webhook.ConnectionInfo != (apiserver.WebhookConnectionInfo{}) {
			found = append(found, problem{field: fmt.Sprintf("authorizers[%d].webhook.connectionInfo", i), typ: schemas.TypeForbidden, message: "must not be set: Gardener sets it to the kubeconfig of the webhook"})
		}
		// what Gardener sets is not known here
		c.Authorizers[i].Webhook.ConnectionInfo.Type = apiserver.AuthorizationWebhookConnectionInfoTypeInCluster
	}
	webhooks := sets.New(string(apiserver.TypeWebhook)) // Gardener adds the other types itself
	return c, append(found, inWords(apiservervalidation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, c, webhooks, webhooks))...)
}

// readFrontend reads what is merged into the configuration of the dashboard.
func readFrontend(content string) (runtime.Object, problems) {
	raw, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		return nil, notYAML(content, err)
	}
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return nil, wrong("is not a map of the settings of the dashboard, such as landingPageUrl, branding and features")
	}
	if _, isMap := fields["features"].(map[string]any); fields["features"] != nil && !isMap {
		return nil, problems{{field: "features", typ: schemas.TypeInvalid, message: "is not a map of features that are true or false"}}
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

// notYAML says what is wrong with a text that should be YAML. One with several fields in a line is
// most likely that of a block that joins its lines.
func notYAML(content string, err error) problems {
	hint := ""
	if line, _, _ := strings.Cut(content, "\n"); strings.Count(line, ": ") > 1 {
		hint = "; its first line holds several fields: if each has a line of its own in the file, write | in front of them, as > joins them"
	}
	return wrong("is not YAML: %s%s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: "), hint)
}

// decoded reads a file of the given type.
func decoded[T runtime.Object](decoder runtime.Decoder, content, what string) (T, problems) {
	var none T
	// what the decoder says of anything but an object is about its own types
	var fields map[string]any
	raw, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		return none, notYAML(content, err)
	}
	if json.Unmarshal(raw, &fields) != nil {
		return none, wrong("is not %s, but a text, number or list: an object with apiVersion and kind is wanted", what)
	}
	object, kind, err := decoder.Decode([]byte(content), nil, nil)
	if err != nil {
		if runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) || runtime.IsNotRegisteredError(err) {
			return none, wrong("is not %s", what)
		}
		return none, wrong("is not %s: %s", what, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	result, ok := object.(T)
	if !ok {
		return none, wrong("is a %s and not %s", kind.Kind, what)
	}
	return result, nil
}

// inWords are what a function of the API server found. Values are named only where there are few
// that are allowed: others may be keys and certificates.
func inWords(found field.ErrorList) problems {
	var out problems
	for _, e := range found {
		p := problem{field: strings.TrimPrefix(strings.TrimPrefix(e.Field, "<nil>"), "."), typ: schemas.Type(strings.TrimPrefix(string(e.Type), "FieldValue"))}
		detail := strings.ReplaceAll(e.Detail, "\n", " ")
		allowed, isList := strings.CutPrefix(detail, "supported values: ")
		switch {
		case e.Type == field.ErrorTypeNotSupported && isList:
			hint := ""
			if guess := suggest.Word(fmt.Sprint(e.BadValue), strings.Split(strings.ReplaceAll(allowed, `"`, ""), ", ")); guess != "" {
				hint = fmt.Sprintf("; did you mean %q?", guess)
			}
			p.message = fmt.Sprintf("%q is not supported, but one of %s%s", fmt.Sprint(e.BadValue), allowed, hint)
		case e.Type == field.ErrorTypeRequired && detail == "":
			p.message = "must be set"
		case e.Type == field.ErrorTypeDuplicate && detail == "":
			p.message = "is listed already"
		case detail == "":
			p.message = "is not valid"
		default:
			p.message = detail
		}
		out = append(out, p)
	}
	return out
}
