// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// Cluster is a kind of cluster that calls the webhooks.
type Cluster string

const (
	// ClusterRuntime is the cluster of the Garden and of extension objects.
	ClusterRuntime Cluster = "runtime"
	// ClusterVirtual is the virtual garden.
	ClusterVirtual Cluster = "virtual"
)

const (
	// ConfigurationPrefix and the kind of cluster form the name of both configurations.
	ConfigurationPrefix = "pergola-admission-controller-"

	webhookValidate  = "validate.admission.pergola.dev"
	webhookNamespace = "validate-namespace.admission.pergola.dev"
	webhookDefault   = "default.admission.pergola.dev"
	timeoutSeconds   = 10
)

// apiGroups returns the API groups whose kinds are declared in a cluster. The core group is
// missing: an unavailable webhook must not block changes of Secrets and ConfigMaps, its own
// included.
func (c Cluster) apiGroups() []string {
	switch c {
	case ClusterRuntime:
		return []string{"extensions.gardener.cloud", "landscape.pergola.dev", "operator.gardener.cloud", "resources.gardener.cloud"}
	case ClusterVirtual:
		return []string{"core.gardener.cloud", "operations.gardener.cloud", "security.gardener.cloud", "seedmanagement.gardener.cloud"}
	}
	return nil
}

// Target is where an API server finds the webhooks: URL or Service.
type Target struct {
	// URL is the URL of the server without path, as in https://127.0.0.1:2750.
	URL string
	// Service is the Service of the server in the same cluster; its port defaults to 443, its path
	// is not used.
	Service *admissionregistrationv1.ServiceReference
	// CABundle holds the PEM authority of the server's certificate; it is empty if the API server's
	// host trusts it.
	CABundle []byte
}

// ClientConfig returns the configuration of the webhook at a path of the server.
func (t Target) ClientConfig(path string) (admissionregistrationv1.WebhookClientConfig, error) {
	config := admissionregistrationv1.WebhookClientConfig{CABundle: t.CABundle}
	switch {
	case (t.URL == "") == (t.Service == nil):
		return config, errors.New("the webhooks need either a URL or a Service: give one of them")
	case t.Service != nil:
		config.Service = t.Service.DeepCopy()
		config.Service.Path = ptr.To(path)
		return config, nil
	}
	parsed, err := url.Parse(t.URL)
	if err != nil {
		return config, fmt.Errorf("the URL of the webhooks: %w", err)
	}
	if parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" || strings.Trim(parsed.Path, "/") != "" {
		return config, fmt.Errorf("the URL of the webhooks, %q, must be like https://HOST:PORT", parsed.Redacted())
	}
	config.URL = ptr.To("https://" + parsed.Host + path)
	return config, nil
}

// ValidatingWebhookConfiguration covers creates, updates and deletes of the kinds that are declared
// in a cluster. In the runtime cluster, it also covers the deletion of namespace garden.
func ValidatingWebhookConfiguration(cluster Cluster, target Target) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	config, err := target.ClientConfig(PathValidate)
	if err != nil {
		return nil, err
	}
	rules, err := webhookRules(cluster, func(schema.GroupVersionKind) bool { return true },
		admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete)
	if err != nil {
		return nil, err
	}
	result := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationPrefix + string(cluster)},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{validatingWebhook(webhookValidate, config, rules)},
	}
	if cluster == ClusterRuntime {
		webhook := validatingWebhook(webhookNamespace, config, []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"namespaces"},
				Scope: ptr.To(admissionregistrationv1.ClusterScope)},
		}})
		webhook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespaceGarden}}
		result.Webhooks = append(result.Webhooks, webhook)
	}
	return result, nil
}

func validatingWebhook(name string, config admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: name, ClientConfig: config, Rules: rules,
		FailurePolicy: ptr.To(admissionregistrationv1.Fail), MatchPolicy: ptr.To(admissionregistrationv1.Equivalent),
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// MutatingWebhookConfiguration covers creates and updates of the kinds that have defaults or
// mutations.
func MutatingWebhookConfiguration(cluster Cluster, target Target) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	config, err := target.ClientConfig(PathDefault)
	if err != nil {
		return nil, err
	}
	known, err := newDefaulter()
	if err != nil {
		return nil, err
	}
	filled := mutation.Kinds()
	rules, err := webhookRules(cluster, func(gvk schema.GroupVersionKind) bool {
		return known.kinds[gvk] || slices.Contains(filled, gvk.GroupKind())
	},
		admissionregistrationv1.Create, admissionregistrationv1.Update)
	if err != nil {
		return nil, err
	}
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationPrefix + string(cluster)},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: webhookDefault, ClientConfig: config, Rules: rules,
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), MatchPolicy: ptr.To(admissionregistrationv1.Equivalent),
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: ptr.To[int32](timeoutSeconds),
			ReinvocationPolicy:      ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, nil
}

// webhookRules returns one rule per group, version and scope for the wanted kinds of a cluster,
// without subresources.
func webhookRules(cluster Cluster, wanted func(schema.GroupVersionKind) bool, operations ...admissionregistrationv1.OperationType) ([]admissionregistrationv1.RuleWithOperations, error) {
	groups := cluster.apiGroups()
	if groups == nil {
		return nil, fmt.Errorf("cluster %q: want %s or %s", cluster, ClusterRuntime, ClusterVirtual)
	}
	type place struct {
		schema.GroupVersion
		scope admissionregistrationv1.ScopeType
	}
	resources := map[place][]string{}
	for _, gvk := range schemas.KnownKinds() {
		if !slices.Contains(groups, gvk.Group) || !wanted(gvk) {
			continue
		}
		definition := crds.Get(gvk.Group, gvk.Kind)
		if definition == nil {
			return nil, fmt.Errorf("there is no definition of %s", gvk)
		}
		scope := admissionregistrationv1.ClusterScope
		if definition.Spec.Scope == apiextensionsv1.NamespaceScoped {
			scope = admissionregistrationv1.NamespacedScope
		}
		p := place{gvk.GroupVersion(), scope}
		resources[p] = append(resources[p], definition.Spec.Names.Plural)
	}
	var rules []admissionregistrationv1.RuleWithOperations
	for p, plurals := range resources {
		rules = append(rules, admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{p.Group}, APIVersions: []string{p.Version}, Resources: slices.Sorted(slices.Values(plurals)), Scope: ptr.To(p.scope),
		}})
	}
	slices.SortFunc(rules, func(a, b admissionregistrationv1.RuleWithOperations) int {
		return cmp.Or(cmp.Compare(a.APIGroups[0], b.APIGroups[0]), cmp.Compare(a.APIVersions[0], b.APIVersions[0]), cmp.Compare(*a.Scope, *b.Scope))
	})
	return rules, nil
}
