// SPDX-License-Identifier: Apache-2.0

package crosscheck

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

// Paths of the configurations of a Garden's and a Shoot's API servers and dashboard.
const (
	gardenKubeAPIServerPath = "spec.virtualCluster.kubernetes.kubeAPIServer"
	gardenAPIServerPath     = "spec.virtualCluster.gardener.gardenerAPIServer"

	gardenDashboardPath    = "spec.virtualCluster.gardener.gardenerDashboard"
	gardenDiscoveryPath    = "spec.virtualCluster.gardener.gardenerDiscoveryServer"
	shootKubeAPIServerPath = "spec.kubernetes.kubeAPIServer"
	auditPolicyRefPath     = ".auditConfig.auditPolicy.configMapRef"
)

// Keys of ConfigMaps with the configuration of an API server, and of the dashboard.
const (
	auditPolicyKey     = "policy"
	apiServerConfigKey = "config.yaml"

	frontendConfigKey = "frontend-config.yaml"
)

// configMapContent is the parsed content of a ConfigMap key.
type configMapContent struct {
	object runtime.Object
	// isMissing means that the ConfigMap has no such key.
	isMissing bool
	problems  configProblems
}

// configProblem is a fault in the text of a ConfigMap: at a field, or at "" for the whole text.
type configProblem struct {
	field         string
	violationType schemas.ViolationType
	message       string
	// isWarning means an unlikely setting, and isAccepted means an error that the process accepts.
	// The process starts with both.
	isWarning, isAccepted bool
}

type configProblems []configProblem

// startupProblems returns the problems that stop the process from starting.
func (p configProblems) startupProblems() configProblems {
	return slices.DeleteFunc(slices.Clone(p), func(one configProblem) bool { return one.isWarning || one.isAccepted })
}

// Error implements error.
func (p configProblems) Error() string {
	var words []string
	for _, one := range p {
		words = append(words, strings.TrimPrefix(one.field+": "+one.message, ": "))
	}
	return strings.Join(words, "; ")
}

func invalidConfig(format string, args ...any) configProblems {
	return configProblems{{violationType: schemas.TypeInvalid, message: fmt.Sprintf(format, args...)}}
}

// readConfig reads the configuration in the ConfigMap that a field names. It reports faults at that
// ConfigMap. It returns nil for faulty and unknown ConfigMaps.
func (c *checker) readConfig(fieldName, name, key string, read func(string) (runtime.Object, configProblems)) runtime.Object {
	in := c.findConfigMap(name)
	if in == nil {
		return nil
	}
	id := configKey{identityOf(in), configTypeOfField(fieldName)}
	known, ok := c.configContents[id]
	if !ok {
		if content := textAt(in.Content().Object, "data", key); content != "" {
			known.object, known.problems = read(content)
		} else {
			known.isMissing = true
		}
		c.configContents[id] = known
	}
	if known.isMissing {
		c.report(fieldName, schemas.TypeInvalid, "%s has no key %q", objectPosition(in), key)
		return nil
	}
	broken := false
	for _, p := range known.problems {
		c.reportForObject(in, configMapFieldPath(key, p.field), p.violationType, "%s", p.message)
		if p.isWarning {
			c.findings[len(c.findings)-1].Severity = schemas.SeverityWarning
		}
		broken = broken || !p.isWarning
	}
	if broken {
		return nil
	}
	return known.object
}

// findConfigMap returns the ConfigMap of that name in the object's namespace, or nil if it does not
// exist.
func (c *checker) findConfigMap(name string) *schemas.Input {
	if name == "" {
		return nil
	}
	return c.findObject(identity{kindConfigMap, cmp.Or(c.namespace(), gardencorev1beta1.GardenNamespace), name})
}

// configMapFieldPath returns the path of a configuration field under a key of a ConfigMap.
func configMapFieldPath(key, field string) string {
	path := fieldpath.Path{"data", fieldpath.Key(key)}.String()
	if field == "" {
		return path
	}
	return path + "." + field
}

// configKey is the key of a parsed ConfigMap, which may be read as several types.
type configKey struct {
	identity
	configType string
}

// configTypeOfField returns the type of the content: the last but one field name, such as
// checkAuthentication.
func configTypeOfField(fieldName string) string {
	steps := strings.Split(fieldName, ".")
	return steps[max(0, len(steps)-2)]
}

// checkAuditPolicies checks that the ConfigMaps of the API servers hold valid audit policies.
// Source: pkg/admissioncontroller/webhook/admission/auditpolicy,
// pkg/operator/webhook/validation/garden.
func checkAuditPolicies(servers ...string) func(*checker) {
	return func(c *checker) {
		for _, server := range servers {
			at := server + auditPolicyRefPath + ".name"
			c.readConfig(at, textAt(c.object(), strings.Split(at, ".")...), auditPolicyKey, readAuditPolicy)
		}
	}
}

// checkFrontendConfig checks that the configuration for the dashboard is readable. Source:
// pkg/operator/controller/garden/garden/components.go.
func checkFrontendConfig(c *checker) {
	const at = gardenDashboardPath + ".frontendConfigMapRef.name"
	c.readConfig(at, textAt(c.object(), strings.Split(at, ".")...), frontendConfigKey, readFrontendConfig)
}

// checkAuthentication checks the configuration, and that no issuer is the API server itself.
// Source: pkg/admissioncontroller/webhook/admission/authenticationconfig.
func checkAuthentication(server string) func(*checker) {
	return func(c *checker) {
		at := server + ".structuredAuthentication.configMapName"
		authentication, ok := c.readConfig(at, textAt(c.object(), strings.Split(at, ".")...), apiServerConfigKey, readAuthentication).(*apiserver.AuthenticationConfiguration)
		if !ok {
			return
		}
		if issuer := textAt(c.object(), strings.Split(gardenDashboardPath+".oidcConfig.issuerURL", ".")...); issuer != "" && server == gardenKubeAPIServerPath &&
			!slices.ContainsFunc(authentication.JWT, func(jwt apiserver.JWTAuthenticator) bool { return jwt.Issuer.URL == issuer }) {
			c.report(gardenDashboardPath+".oidcConfig.issuerURL", schemas.TypeInvalid, "kube-apiserver rejects tokens of %q, because %s has no issuer with this url; add it, or no user can log in to the dashboard", issuer, objectPosition(c.findConfigMap(textAt(c.object(), strings.Split(at, ".")...))))
			c.findings[len(c.findings)-1].Severity = schemas.SeverityWarning
		}
		accounts := mapAt(c.object(), strings.Split(server+".serviceAccountConfig", ".")...)
		own := append(stringItems(listAt(accounts, "acceptedIssuers")), textAt(accounts, "issuer"))
		in := c.findConfigMap(textAt(c.object(), strings.Split(at, ".")...))
		for i, jwt := range authentication.JWT {
			if slices.Contains(own, jwt.Issuer.URL) {
				c.reportForObject(in, configMapFieldPath(apiServerConfigKey, fmt.Sprintf("jwt[%d].issuer.url", i)), schemas.TypeInvalid, "%q issues the tokens of service accounts of %s (%s.serviceAccountConfig); name another issuer", jwt.Issuer.URL, objectPosition(c.input), server)
			}
		}
	}
}

// checkAuthorization checks the configuration. Gardener sets the webhook connections, so each
// webhook needs a kubeconfig. Source:
// pkg/admissioncontroller/webhook/admission/authorizationconfig.
func checkAuthorization(server string) func(*checker) {
	return func(c *checker) {
		at := server + ".structuredAuthorization.configMapName"
		authorization, ok := c.readConfig(at, textAt(c.object(), strings.Split(at, ".")...), apiServerConfigKey, readAuthorization).(*apiserver.AuthorizationConfiguration)
		if !ok {
			return
		}
		var named []string
		visitValues(c.object(), server+".structuredAuthorization.kubeconfigs[].authorizerName", func(path string, value any) {
			name := fmt.Sprint(value)
			if slices.Contains(named, name) {
				c.report(path, schemas.TypeDuplicate, "the authorizer %q already has a kubeconfig", name)
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

// decoders read API server configuration like the API servers: strictly, except audit policies.
type decoders struct{ audit, apiserver runtime.Decoder }

var configDecoders = sync.OnceValue(func() decoders {
	policies, configs := runtime.NewScheme(), runtime.NewScheme()
	auditinstall.Install(policies)
	apiserverinstall.Install(configs)
	return decoders{
		audit:     serializer.NewCodecFactory(policies).UniversalDecoder(),
		apiserver: serializer.NewCodecFactory(configs, serializer.EnableStrict).UniversalDecoder(),
	}
})

func readAuditPolicy(content string) (runtime.Object, configProblems) {
	policy, found := decodeConfig[*audit.Policy](configDecoders().audit, content, "a Policy of audit.k8s.io/v1")
	if len(found) > 0 {
		return nil, found
	}
	// kube-apiserver fails, too (k8s.io/apiserver, pkg/audit/policy: LoadPolicyFromBytes)
	if len(policy.Rules) == 0 {
		return nil, configProblems{{field: "rules", violationType: schemas.TypeRequired, message: "an audit policy has at least one rule; to log nothing: level None"}}
	}
	return policy, append(convertErrors(auditvalidation.ValidatePolicy(policy)), unknownAuditWords(policy)...)
}

// unknownAuditWords finds words that occur in no request. kube-apiserver accepts such a rule, which
// then has no effect.
func unknownAuditWords(policy *audit.Policy) configProblems {
	var out configProblems
	add := func(wrong, format string, at ...any) {
		if wrong != "" {
			out = append(out, configProblem{field: fmt.Sprintf(format, at...), violationType: schemas.TypeNotSupported, isAccepted: true, message: wrong})
		}
	}
	for i, rule := range policy.Rules {
		if everything := len(rule.Users)+len(rule.UserGroups)+len(rule.Verbs)+len(rule.Resources)+len(rule.Namespaces)+len(rule.NonResourceURLs) == 0; everything && i < len(policy.Rules)-1 {
			out = append(out, configProblem{field: fmt.Sprintf("rules[%d]", i), violationType: schemas.TypeInvalid, isWarning: true,
				message: "matches every request, so later rules never apply; put it last"})
		}
		if (rule.Level == audit.LevelRequest || rule.Level == audit.LevelRequestResponse) && len(rule.NonResourceURLs) == 0 && hasSecrets(rule.Resources) && !slices.ContainsFunc(policy.Rules[:i], isExcludingSecretContent) {
			out = append(out, configProblem{field: fmt.Sprintf("rules[%d].level", i), violationType: schemas.TypeInvalid, isWarning: true,
				message: fmt.Sprintf("%s writes the content of Secrets to the log; put a rule with level Metadata for secrets before it", rule.Level)})
		}
		for j, verb := range rule.Verbs {
			add(requests.CheckVerb(verb), "rules[%d].verbs[%d]", i, j)
		}
		for j, user := range rule.Users {
			add(requests.CheckSubject(user), "rules[%d].users[%d]", i, j)
		}
		for j, group := range rule.UserGroups {
			add(requests.CheckSubject(group), "rules[%d].userGroups[%d]", i, j)
		}
		for j, of := range rule.Resources {
			wrong := requests.CheckGroup(of.Group)
			add(wrong, "rules[%d].resources[%d].group", i, j)
			for k, name := range of.Resources {
				if wrong == "" {
					add(requests.CheckResource(name, []string{of.Group}, requests.KubernetesResources), "rules[%d].resources[%d].resources[%d]", i, j, k)
				}
			}
		}
	}
	return out
}

// hasSecrets reports whether a rule's resources include Secrets. An empty list means all
// resources.
func hasSecrets(resources []audit.GroupResources) bool {
	return len(resources) == 0 || slices.ContainsFunc(resources, func(of audit.GroupResources) bool {
		return of.Group == "" && len(of.ResourceNames) == 0 && (len(of.Resources) == 0 || slices.Contains(of.Resources, "secrets") || slices.Contains(of.Resources, "*"))
	})
}

// isExcludingSecretContent reports whether a rule keeps the content of Secrets out of the log, at
// least for some users.
func isExcludingSecretContent(rule audit.PolicyRule) bool {
	return (rule.Level == audit.LevelNone || rule.Level == audit.LevelMetadata) && len(rule.NonResourceURLs) == 0 && hasSecrets(rule.Resources)
}

func readAuthentication(content string) (runtime.Object, configProblems) {
	c, found := decodeConfig[*apiserver.AuthenticationConfiguration](configDecoders().apiserver, content, "an AuthenticationConfiguration of apiserver.config.k8s.io")
	if len(found) > 0 {
		return nil, found
	}
	out := convertErrors(apiservervalidation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), c, nil))
	if c.Anonymous != nil && c.Anonymous.Enabled && len(c.Anonymous.Conditions) == 0 {
		out = append(out, configProblem{field: "anonymous.enabled", violationType: schemas.TypeInvalid, isWarning: true,
			message: "allows anonymous requests to all paths; list the intended paths in anonymous.conditions, such as /livez and /readyz"})
	}
	for i, jwt := range c.JWT {
		if groups := jwt.ClaimMappings.Groups; groups.Prefix != nil && *groups.Prefix == "" && len(jwt.UserValidationRules) == 0 {
			out = append(out, configProblem{field: fmt.Sprintf("jwt[%d].claimMappings.groups.prefix", i), violationType: schemas.TypeInvalid, isWarning: true,
				message: "is empty, so the issuer can put anyone into system:masters; set a prefix, or reject groups that begin with system: in userValidationRules"})
		}
		// findings are sorted later
		for field, prefix := range map[string]*string{"username": jwt.ClaimMappings.Username.Prefix, "groups": jwt.ClaimMappings.Groups.Prefix} {
			if prefix != nil && strings.HasPrefix(*prefix, "system:") {
				out = append(out, configProblem{field: fmt.Sprintf("jwt[%d].claimMappings.%s.prefix", i, field), violationType: schemas.TypeInvalid, isWarning: true,
					message: fmt.Sprintf("%q is the prefix of Kubernetes' own users and groups, which the issuer could then give to anyone; choose another prefix", *prefix)})
			}
		}
	}
	return c, out
}

// builtinAuthorizers are the authorizer names in every configuration of a Shoot or Garden
// (components/kubernetes/apiserver_auth.cue and its users).
var builtinAuthorizers = [...]string{"node", "rbac", "node-agent-authorizer", "seed-authorizer", "shoot-authorizer"}

func readAuthorization(content string) (runtime.Object, configProblems) {
	c, found := decodeConfig[*apiserver.AuthorizationConfiguration](configDecoders().apiserver, content, "an AuthorizationConfiguration of apiserver.config.k8s.io")
	if len(found) > 0 {
		return nil, found
	}
	for i, a := range c.Authorizers {
		if a.Webhook == nil {
			continue
		}
		if slices.Contains(builtinAuthorizers[:], strings.ToLower(a.Name)) {
			found = append(found, configProblem{field: fmt.Sprintf("authorizers[%d].name", i), violationType: schemas.TypeInvalid, message: fmt.Sprintf("%q is the name of a built-in authorizer; choose another name", a.Name)})
		}
		if a.Webhook.ConnectionInfo != (apiserver.WebhookConnectionInfo{}) {
			found = append(found, configProblem{field: fmt.Sprintf("authorizers[%d].webhook.connectionInfo", i), violationType: schemas.TypeForbidden, message: "must not be set: Gardener sets it to the kubeconfig of the webhook"})
		}
		// the value that Gardener sets is unknown here
		c.Authorizers[i].Webhook.ConnectionInfo.Type = apiserver.AuthorizationWebhookConnectionInfoTypeInCluster
	}
	webhooks := sets.New(string(apiserver.TypeWebhook)) // Gardener adds the other types itself
	return c, append(found, convertErrors(apiservervalidation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, c, webhooks, webhooks))...)
}

// readFrontendConfig reads the configuration that is merged into the dashboard's.
func readFrontendConfig(content string) (runtime.Object, configProblems) {
	raw, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		return nil, yamlProblem(content, err)
	}
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return nil, invalidConfig("is not a map of the settings of the dashboard, such as landingPageUrl, branding and features")
	}
	if _, isMap := fields["features"].(map[string]any); fields["features"] != nil && !isMap {
		return nil, configProblems{{field: "features", violationType: schemas.TypeInvalid, message: "is not a map of features that are true or false"}}
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

// yamlProblem describes a YAML error. Several fields in a line hint at a folded block.
func yamlProblem(content string, err error) configProblems {
	hint := ""
	if line, _, _ := strings.Cut(content, "\n"); strings.Count(line, ": ") > 1 {
		hint = "; its first line holds several fields: if each has its own line in the file, write | instead of >, which joins lines"
	}
	return invalidConfig("is not YAML: %s%s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: "), hint)
}

// decodeConfig decodes the content as type T.
func decodeConfig[T runtime.Object](decoder runtime.Decoder, content, what string) (T, configProblems) {
	var none T
	// decoder errors about non-objects only name Go types
	var fields map[string]any
	raw, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		return none, yamlProblem(content, err)
	}
	if json.Unmarshal(raw, &fields) != nil {
		return none, invalidConfig("is not %s but a text, number or list; write an object with apiVersion and kind", what)
	}
	object, kind, err := decoder.Decode([]byte(content), nil, nil)
	if err != nil {
		if runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) || runtime.IsNotRegisteredError(err) {
			return none, invalidConfig("is not %s", what)
		}
		return none, invalidConfig("is not %s: %s", what, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	result, ok := object.(T)
	if !ok {
		return none, invalidConfig("is a %s and not %s", kind.Kind, what)
	}
	return result, nil
}

// convertErrors converts the errors of an API server's validation. It quotes a value only if few
// values are allowed, because others may be keys and certificates.
func convertErrors(found field.ErrorList) configProblems {
	var out configProblems
	for _, e := range found {
		p := configProblem{field: strings.TrimPrefix(strings.TrimPrefix(e.Field, "<nil>"), "."), violationType: schemas.ViolationType(strings.TrimPrefix(string(e.Type), "FieldValue"))}
		detail := strings.ReplaceAll(e.Detail, "\n", " ")
		allowed, isList := strings.CutPrefix(detail, "supported values: ")
		switch {
		case e.Type == field.ErrorTypeNotSupported && isList:
			hint := ""
			if guess := suggest.Closest(fmt.Sprint(e.BadValue), strings.Split(strings.ReplaceAll(allowed, `"`, ""), ", ")); guess != "" {
				hint = fmt.Sprintf("; did you mean %q?", guess)
			}
			p.message = fmt.Sprintf("%q is not supported; use one of %s%s", fmt.Sprint(e.BadValue), allowed, hint)
		case e.Type == field.ErrorTypeRequired && detail == "":
			p.message = "must be set"
		case e.Type == field.ErrorTypeDuplicate && detail == "":
			p.message = "is already listed"
		case detail == "":
			p.message = "is not valid"
		default:
			p.message = detail
		}
		out = append(out, p)
	}
	return out
}
