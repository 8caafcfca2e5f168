package across

import (
	"encoding/json"
	"errors"
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
	"github.com/pergola-dev/pergola/schemas"
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
	err    error
}

// configOf reads the configuration in the ConfigMap that a field names, and reports what is wrong with it at that field. It
// gives nil then, and for what the landscape does not have.
func (c *check) configOf(fieldName, name, key string, read func(string) (runtime.Object, error)) runtime.Object {
	namespace := c.namespace()
	if namespace == "" {
		namespace = gardencorev1beta1.GardenNamespace
	}
	id := identity{kindConfigMap, namespace, name}
	in := c.find(id)
	if name == "" || in == nil {
		return nil
	}
	known, ok := c.configs[configKey{id, fieldKind(fieldName)}]
	if !ok {
		known = config{err: fmt.Errorf("has no key %q", key)}
		if content := text(in.Content().Object, "data", key); content != "" {
			if known.object, known.err = read(content); known.err != nil {
				known.err = fmt.Errorf("is not what it has to be: data[%s]: %w", key, known.err)
			}
		}
		c.configs[configKey{id, fieldKind(fieldName)}] = known
	}
	if known.err != nil {
		c.report(fieldName, schemas.TypeInvalid, "%s %v", place(in), known.err)
		return nil
	}
	return known.object
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

// auditPolicies: the audit policy of each API server is one. Source: pkg/admissioncontroller/webhook/admission/auditpolicy,
// pkg/operator/webhook/validation/garden.
func auditPolicies(servers ...string) func(*check) {
	return func(c *check) {
		for _, server := range servers {
			at := server + policyRef + ".name"
			c.configOf(at, text(c.object(), strings.Split(at, ".")...), keyPolicy, readAuditPolicy)
		}
	}
}

// frontendConfig: what is handed on to the dashboard can be read. Source: pkg/operator/controller/garden/garden/components.go.
func frontendConfig(c *check) {
	const at = gardenDashboard + ".frontendConfigMapRef.name"
	c.configOf(at, text(c.object(), strings.Split(at, ".")...), keyFrontend, readFrontend)
}

// structuredAuthentication: the configuration is one, and no issuer in it is that of the API server itself. Source:
// pkg/admissioncontroller/webhook/admission/authenticationconfig.
func structuredAuthentication(server string) func(*check) {
	return func(c *check) {
		at := server + ".structuredAuthentication.configMapName"
		authentication, ok := c.configOf(at, text(c.object(), strings.Split(at, ".")...), keyConfig, readAuthentication).(*apiserver.AuthenticationConfiguration)
		if !ok {
			return
		}
		accounts := table(c.object(), strings.Split(server+".serviceAccountConfig", ".")...)
		own := append(texts(list(accounts, "acceptedIssuers")), text(accounts, "issuer"))
		for i, jwt := range authentication.JWT {
			if slices.Contains(own, jwt.Issuer.URL) {
				c.report(at, schemas.TypeInvalid, "jwt[%d].issuer.url of the configuration is %q, which issues tokens of service accounts (%s.serviceAccountConfig)", i, jwt.Issuer.URL, server)
			}
		}
	}
}

// structuredAuthorization: the configuration is one, Gardener fills in how webhooks are reached, and each of them has a
// kubeconfig. Source: pkg/admissioncontroller/webhook/admission/authorizationconfig.
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

// decoders read the configuration files of API servers: as they do, unknown fields are refused in all but audit policies.
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

func readAuditPolicy(content string) (runtime.Object, error) {
	policy, err := decoded[*audit.Policy](fileDecoders().audit, content, "a Policy of audit.k8s.io/v1")
	if err != nil {
		return nil, err
	}
	if len(policy.Rules) == 0 { // as kube-apiserver refuses it (k8s.io/apiserver, pkg/audit/policy: LoadPolicyFromBytes)
		return nil, errors.New("rules: Required an audit policy has at least one rule; to log nothing: level None")
	}
	return policy, inWords(auditvalidation.ValidatePolicy(policy))
}

func readAuthentication(content string) (runtime.Object, error) {
	c, err := decoded[*apiserver.AuthenticationConfiguration](fileDecoders().apiserver, content, "an AuthenticationConfiguration of apiserver.config.k8s.io")
	if err != nil {
		return nil, err
	}
	return c, inWords(apiservervalidation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), c, nil))
}

// ourAuthorizers are in every configuration of a Shoot or Garden, by their names (components/kubernetes/apiserver_auth.cue and those who use it).
var ourAuthorizers = [...]string{"node", "rbac", "node-agent-authorizer", "seed-authorizer", "shoot-authorizer"}

func readAuthorization(content string) (runtime.Object, error) {
	c, err := decoded[*apiserver.AuthorizationConfiguration](fileDecoders().apiserver, content, "an AuthorizationConfiguration of apiserver.config.k8s.io")
	if err != nil {
		return nil, err
	}
	for i, a := range c.Authorizers {
		if a.Webhook == nil {
			continue
		}
		if slices.Contains(ourAuthorizers[:], strings.ToLower(a.Name)) {
			return nil, fmt.Errorf("authorizers[%d].name: %q is the name of an authorizer that is there without it", i, a.Name)
		}
		if a.Webhook.ConnectionInfo != (apiserver.WebhookConnectionInfo{}) {
			return nil, fmt.Errorf("authorizers[%d].webhook.connectionInfo must not be set: Gardener sets it to the kubeconfig of the webhook", i)
		}
		c.Authorizers[i].Webhook.ConnectionInfo.Type = apiserver.AuthorizationWebhookConnectionInfoTypeInCluster // what Gardener sets is not known here
	}
	webhooks := sets.New(string(apiserver.TypeWebhook)) // Gardener adds the other types itself
	return c, inWords(apiservervalidation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, c, webhooks, webhooks))
}

// readFrontend reads what is merged into the configuration of the dashboard.
func readFrontend(content string) (runtime.Object, error) {
	raw, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		return nil, fmt.Errorf("it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return nil, errors.New("it is not a map of the settings of the dashboard, such as landingPageUrl, branding and features")
	}
	if _, isMap := fields["features"].(map[string]any); fields["features"] != nil && !isMap {
		return nil, errors.New("features is not a map of features that are true or false")
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

// decoded reads a file of the given type.
func decoded[T runtime.Object](decoder runtime.Decoder, content, what string) (T, error) {
	var none T
	object, kind, err := decoder.Decode([]byte(content), nil, nil)
	if err != nil {
		if runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) || runtime.IsNotRegisteredError(err) {
			return none, fmt.Errorf("it is not %s", what)
		}
		var fields map[string]any // what the decoder says of anything else is about its own types
		if raw, notYAML := yaml.YAMLToJSON([]byte(content)); notYAML == nil && json.Unmarshal(raw, &fields) != nil {
			return none, fmt.Errorf("it is not %s, but a text, number or list: an object with apiVersion and kind is wanted", what)
		}
		return none, fmt.Errorf("it is not %s: %s", what, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	result, ok := object.(T)
	if !ok {
		return none, fmt.Errorf("it is a %s and not %s", kind.Kind, what)
	}
	return result, nil
}

// inWords makes one error of what a function of the API server found, without the values: they may be keys and certificates.
func inWords(found field.ErrorList) error {
	var words []string
	for _, e := range found {
		name := strings.TrimPrefix(strings.TrimPrefix(e.Field, "<nil>"), ".")
		words = append(words, strings.TrimSuffix(strings.TrimSpace(name+": "+string(e.Type)+" "+e.Detail), ":"))
	}
	if len(words) == 0 {
		return nil
	}
	return errors.New(strings.ReplaceAll(strings.Join(words, "; "), "FieldValue", ""))
}
