// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"errors"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Webhooks selects the webhooks; none by default. Its JSON form is section `webhooks` of upstream's
// ResourceManagerConfiguration.
type Webhooks struct {
	CRDDeletionProtection         Switch                 `json:"crdDeletionProtection"`
	EndpointSliceHints            Switch                 `json:"endpointSliceHints"`
	ExtensionValidation           Switch                 `json:"extensionValidation"`
	HighAvailabilityConfig        HighAvailabilityConfig `json:"highAvailabilityConfig"`
	KubernetesServiceHost         KubernetesServiceHost  `json:"kubernetesServiceHost"`
	PodKubeAPIServerLoadBalancing Switch                 `json:"podKubeAPIServerLoadBalancing"`
	PodSchedulerName              PodSchedulerName       `json:"podSchedulerName"`
	PodTopologySpreadConstraints  Switch                 `json:"podTopologySpreadConstraints"`
	ProjectedTokenMount           ProjectedTokenMount    `json:"projectedTokenMount"`
	SeccompProfile                Switch                 `json:"seccompProfile"`
	SystemComponentsConfig        SystemComponentsConfig `json:"systemComponentsConfig"`
	VPAInPlaceUpdates             Switch                 `json:"vpaInPlaceUpdates"`
}

// Switch enables a webhook without settings.
type Switch struct {
	Enabled bool `json:"enabled"`
}

// HighAvailabilityConfig configures the webhook that spreads workload.
type HighAvailabilityConfig struct {
	Enabled bool `json:"enabled"`
	// DefaultNotReadyTolerationSeconds and DefaultUnreachableTolerationSeconds are how long pods
	// stay on nodes that are not ready, or unreachable, unless they set it; it is empty if nil.
	DefaultNotReadyTolerationSeconds    *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
}

// KubernetesServiceHost configures the webhook that sets KUBERNETES_SERVICE_HOST.
type KubernetesServiceHost struct {
	Enabled bool `json:"enabled"`
	// Host is the name of the API server.
	Host string `json:"host"`
}

// PodSchedulerName configures the webhook that sets the scheduler of pods.
type PodSchedulerName struct {
	Enabled bool `json:"enabled"`
	// SchedulerName is for pods that name none or the default one; the default is
	// default-scheduler.
	SchedulerName string `json:"schedulerName,omitempty"`
}

// ProjectedTokenMount configures the webhook that mounts tokens.
type ProjectedTokenMount struct {
	Enabled bool `json:"enabled"`
	// ExpirationSeconds is the lifetime of tokens, 600 or more; the default is 43200.
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
}

// SystemComponentsConfig configures the webhook that places system components.
type SystemComponentsConfig struct {
	Enabled bool `json:"enabled"`
	// NodeSelector selects the nodes for system components; pods tolerate their taints.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// PodNodeSelector and PodTolerations are added to pods.
	PodNodeSelector map[string]string   `json:"podNodeSelector,omitempty"`
	PodTolerations  []corev1.Toleration `json:"podTolerations,omitempty"`
}

// Options are the options of New.
type Options struct {
	Webhooks Webhooks
	// Source reads the cluster of extension objects without a cache: a whole collection that is
	// deleted, if the API server does not send its objects. For deletion protection.
	Source client.Reader
	// Target reads the cluster of the workload: ServiceAccounts, Namespaces,
	// HorizontalPodAutoscalers, ConfigMaps and Services by name or namespace, metadata of Nodes,
	// and Nodes for system components. It may be a cache.
	Target client.Reader
	// Live reads the target live if the cache lacks an object; may be nil.
	Live client.Reader
	// Log gets a line for each denial and failure, never their content; the default is none.
	Log *slog.Logger
}

const (
	// defaultTokenExpiration is the default lifetime of projected tokens and the minimum of
	// Kubernetes, in seconds.
	defaultTokenExpiration, minTokenExpiration = 43200, 600
	// maxTokenExpiration is the maximum of Kubernetes, in seconds.
	maxTokenExpiration = 1 << 32
)

// withDefaults sets the defaults.
func (w Webhooks) withDefaults() Webhooks {
	if w.PodSchedulerName.SchedulerName == "" {
		w.PodSchedulerName.SchedulerName = corev1.DefaultSchedulerName
	}
	if w.ProjectedTokenMount.ExpirationSeconds == nil {
		seconds := int64(defaultTokenExpiration)
		w.ProjectedTokenMount.ExpirationSeconds = &seconds
	}
	return w
}

// Validate returns all invalid settings.
func (w Webhooks) Validate() error {
	var errs []error
	invalid := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("webhooks.%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if s := w.ProjectedTokenMount.ExpirationSeconds; w.ProjectedTokenMount.Enabled && s != nil && (*s < minTokenExpiration || *s > maxTokenExpiration) {
		invalid("projectedTokenMount.expirationSeconds", "%d: want %d (10 minutes) to %d", *s, minTokenExpiration, maxTokenExpiration)
	}
	if w.KubernetesServiceHost.Enabled && w.KubernetesServiceHost.Host == "" {
		invalid("kubernetesServiceHost.host", "missing: set the name of the API server")
	}
	for field, seconds := range map[string]*int64{
		"defaultNotReadyTolerationSeconds":    w.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds,
		"defaultUnreachableTolerationSeconds": w.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds,
	} {
		if seconds != nil && *seconds < 0 {
			invalid("highAvailabilityConfig."+field, "%d: want 0 or more", *seconds)
		}
	}
	for i, toleration := range w.SystemComponentsConfig.PodTolerations {
		if problem := tolerationProblem(toleration); problem != "" {
			invalid(fmt.Sprintf("systemComponentsConfig.podTolerations[%d]", i), "%s", problem)
		}
	}
	return errors.Join(errs...)
}

// tolerationProblem says why Kubernetes would reject a toleration.
func tolerationProblem(t corev1.Toleration) string {
	switch {
	case t.Key == "" && t.Operator != corev1.TolerationOpExists:
		return "without a key the operator must be Exists"
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		return "operator Exists takes no value"
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return "tolerationSeconds requires effect NoExecute"
	}
	switch t.Operator {
	case "", corev1.TolerationOpEqual, corev1.TolerationOpExists:
	default:
		return fmt.Sprintf("operator %q is not known; want Equal or Exists", t.Operator)
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return fmt.Sprintf("effect %q is not known; want NoSchedule, PreferNoSchedule or NoExecute", t.Effect)
	}
	return ""
}

// HasEnabled reports whether any webhook is enabled.
func (w Webhooks) HasEnabled() bool {
	for _, on := range []bool{w.CRDDeletionProtection.Enabled, w.EndpointSliceHints.Enabled, w.ExtensionValidation.Enabled, w.HighAvailabilityConfig.Enabled,
		w.KubernetesServiceHost.Enabled, w.PodKubeAPIServerLoadBalancing.Enabled, w.PodSchedulerName.Enabled, w.PodTopologySpreadConstraints.Enabled,
		w.ProjectedTokenMount.Enabled, w.SeccompProfile.Enabled, w.SystemComponentsConfig.Enabled, w.VPAInPlaceUpdates.Enabled} {
		if on {
			return true
		}
	}
	return false
}
