// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/webhook/admission"
	"github.com/pergola-dev/pergola/render/availability"
)

// Responsibility selects the namespaces of the webhooks for workload.
type Responsibility string

const (
	// ForRuntime is for a runtime cluster or a seed: namespaces of Gardener except system
	// namespaces.
	ForRuntime Responsibility = "runtime"
	// ForTarget is for the virtual garden or a Shoot, called from outside: system namespaces.
	ForTarget Responsibility = "target"
)

const (
	// configurationName is upstream's, so that its configurations are adopted.
	configurationName = "gardener-resource-manager"
	// suffixTarget ends the name of the configuration for a target.
	suffixTarget = "-shoot"
	// suffixWebhook ends the names of all webhooks.
	suffixWebhook = ".resources.gardener.cloud"
	// excludeFromRemediation prevents gardenlet from fixing these configurations, which look
	// dangerous to it.
	excludeFromRemediation = "remediation.webhook.shoot.gardener.cloud/exclude"

	timeoutSeconds, shortTimeoutSeconds = 10, 2
)

// Configuration is the input of the webhook configurations.
type Configuration struct {
	// Webhooks to configure, if they are enabled.
	Webhooks       Webhooks
	Responsibility Responsibility
	// NamePrefix of the resource manager's name, such as virtual-garden- in the virtual garden.
	NamePrefix string
	// VirtualGarden says that namespace garden has the API server of a virtual garden, whose load
	// is balanced.
	VirtualGarden bool
	// Target is the address of the webhooks for the API server.
	Target admission.Target
}

// MutatingWebhookConfiguration returns the configuration of the webhooks that change objects. It
// may be empty.
func MutatingWebhookConfiguration(c Configuration) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	name := c.name()
	if c.Responsibility == ForTarget {
		name += suffixTarget
	}
	result := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels()},
	}
	for _, webhook := range c.mutating() {
		if !webhook.enabled {
			continue
		}
		made, err := webhook.build(c.Target)
		if err != nil {
			return nil, err
		}
		result.Webhooks = append(result.Webhooks, made)
	}
	return result, nil
}

// name is the resource manager's name, and the value of label app of its pods.
func (c Configuration) name() string { return c.NamePrefix + configurationName }

func (c Configuration) labels() map[string]string {
	labels := map[string]string{gardencorev1beta1.LabelApp: c.name()}
	if c.Responsibility == ForRuntime {
		labels[excludeFromRemediation] = "true"
	}
	return labels
}

// mutatingWebhook has the settings in which mutating webhooks differ.
type mutatingWebhook struct {
	enabled    bool
	name, path string
	rules      []admissionregistrationv1.RuleWithOperations
	namespaces *metav1.LabelSelector
	objects    *metav1.LabelSelector
	// policy and match default to Fail and Exact, timeout to 10 s; reinvocation has no default.
	policy       admissionregistrationv1.FailurePolicyType
	match        admissionregistrationv1.MatchPolicyType
	reinvocation *admissionregistrationv1.ReinvocationPolicyType
	timeout      int32
}

func (w mutatingWebhook) build(target admission.Target) (admissionregistrationv1.MutatingWebhook, error) {
	config, err := target.ClientConfig(w.path)
	if err != nil {
		return admissionregistrationv1.MutatingWebhook{}, err
	}
	if w.policy == "" {
		w.policy = admissionregistrationv1.Fail
	}
	if w.match == "" {
		w.match = admissionregistrationv1.Exact
	}
	if w.timeout == 0 {
		w.timeout = timeoutSeconds
	}
	return admissionregistrationv1.MutatingWebhook{
		Name: w.name + suffixWebhook, ClientConfig: config, Rules: w.rules, NamespaceSelector: w.namespaces, ObjectSelector: w.objects,
		FailurePolicy: &w.policy, MatchPolicy: &w.match, ReinvocationPolicy: w.reinvocation, TimeoutSeconds: &w.timeout,
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: reviewVersions(),
	}, nil
}

// reviewVersions are upstream's, in its order.
func reviewVersions() []string { return []string{"v1beta1", "v1"} }

// mutating returns all webhooks that change objects.
func (c Configuration) mutating() []mutatingWebhook {
	namespaces := c.namespaces()
	podCreation := rules("", "v1", []string{"pods"}, admissionregistrationv1.Create)
	changes := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	never := ptr.To(admissionregistrationv1.NeverReinvocationPolicy)
	injected := labelNot(KubernetesServiceHostInject, "disable")
	// Its own pods would wait for themselves.
	notItself := labelNot(gardencorev1beta1.LabelApp, c.name())
	systemNamespaces := namespaces.DeepCopy()
	if c.Responsibility == ForRuntime {
		systemNamespaces.MatchLabels = map[string]string{ConsiderSystemComponentsConfig: "true"}
	}
	available := namespaces.DeepCopy()
	available.MatchLabels = map[string]string{gardencorev1beta1.HighAvailabilityConfigConsider: "true"}
	return []mutatingWebhook{
		{enabled: c.Webhooks.ProjectedTokenMount.Enabled, name: "projected-token-mount", path: PathProjectedTokenMount, rules: podCreation,
			namespaces: namespaces, objects: podSelector(labelAbsent(SkipProjectedTokenMount), notItself)},
		{enabled: c.Webhooks.HighAvailabilityConfig.Enabled, name: "high-availability-config", path: PathHighAvailabilityConfig,
			rules: slices.Concat(rules("apps", "v1", []string{"deployments", "statefulsets"}, changes...),
				rules("autoscaling", "v2", []string{"horizontalpodautoscalers"}, changes...)),
			namespaces: available, objects: c.managed(selectorOf(labelAbsent(availability.SkipLabel))), match: admissionregistrationv1.Equivalent},
		{enabled: c.Webhooks.PodSchedulerName.Enabled, name: "pod-scheduler-name", path: PathPodSchedulerName, rules: podCreation,
			namespaces: selectorOf(), objects: podSelector(), policy: admissionregistrationv1.Ignore},
		{enabled: c.Webhooks.SeccompProfile.Enabled, name: "seccomp-profile", path: PathSeccompProfile, rules: podCreation,
			namespaces: namespaces, objects: podSelector(labelAbsent(SkipSeccompProfile), notItself)},
		{enabled: c.Webhooks.KubernetesServiceHost.Enabled, name: "kubernetes-service-host", path: PathKubernetesServiceHost, rules: podCreation,
			namespaces: selectorOf(injected), objects: podSelector(injected), policy: admissionregistrationv1.Ignore, reinvocation: never, timeout: shortTimeoutSeconds},
		{enabled: c.Webhooks.PodKubeAPIServerLoadBalancing.Enabled, name: "pod-kube-apiserver-load-balancing", path: PathPodKubeAPIServerLoadBalancing, rules: podCreation,
			namespaces: labelSelector(gardencorev1beta1.GardenRole, gardencorev1beta1.GardenRoleShoot), objects: podSelector()},
		{enabled: c.Webhooks.PodKubeAPIServerLoadBalancing.Enabled && c.VirtualGarden, name: "pod-virtual-garden-kube-apiserver-load-balancing", path: PathPodKubeAPIServerLoadBalancing,
			rules: podCreation, namespaces: labelSelector(corev1.LabelMetadataName, gardencorev1beta1.GardenNamespace), objects: podSelector(notItself)},
		{enabled: c.Webhooks.SystemComponentsConfig.Enabled, name: "system-components-config", path: PathSystemComponentsConfig, rules: podCreation,
			namespaces: systemNamespaces, objects: c.managed(podSelector(labelAbsent(SkipSystemComponentsConfig)))},
		{enabled: c.Webhooks.EndpointSliceHints.Enabled, name: "endpoint-slice-hints", path: PathEndpointSliceHints, rules: rules("discovery.k8s.io", "v1", []string{"endpointslices"}, changes...),
			namespaces: namespaces, objects: labelSelector(ConsiderEndpointSliceHints, "true"), match: admissionregistrationv1.Equivalent},
		{enabled: c.Webhooks.PodTopologySpreadConstraints.Enabled, name: "pod-topology-spread-constraints", path: PathPodTopologySpreadConstraints, rules: podCreation,
			namespaces: namespaces, objects: c.managed(podSelector(notItself, labelAbsent(SkipPodTopologySpreadConstraints)))},
		{enabled: c.Webhooks.VPAInPlaceUpdates.Enabled, name: "vpa-in-place-updates", path: PathVPAInPlaceUpdates, rules: rules("autoscaling.k8s.io", "v1", []string{"verticalpodautoscalers"}, changes...),
			namespaces: namespaces, objects: selectorOf(labelAbsent(SkipVPAInPlaceUpdates)), match: admissionregistrationv1.Equivalent, reinvocation: never},
	}
}

// namespaces selects the namespaces of the configuration.
func (c Configuration) namespaces() *metav1.LabelSelector {
	system := metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{metav1.NamespaceSystem, "kubernetes-dashboard"}}
	if c.Responsibility == ForTarget {
		return selectorOf(system)
	}
	system.Operator = metav1.LabelSelectorOpNotIn
	return selectorOf(metav1.LabelSelectorRequirement{Key: gardencorev1beta1.GardenRole, Operator: metav1.LabelSelectorOpExists}, system)
}

// managed limits a selector to Gardener's objects where others deploy, too.
func (c Configuration) managed(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if c.Responsibility == ForTarget {
		selector.MatchLabels = map[string]string{resourcesv1alpha1.ManagedBy: resourcesv1alpha1.ManagedByGardener}
	}
	return selector
}

func rules(group, version string, resources []string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{Operations: operations,
		Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources}}}
}

func selectorOf(requirements ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: requirements}
}

// podSelector excludes mirror pods of static pods.
func podSelector(requirements ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	return selectorOf(append(requirements, labelNot(staticPod, "true"))...)
}

func labelSelector(label, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}
}

func labelAbsent(label string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpDoesNotExist}
}

func labelNot(label, value string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}}
}
