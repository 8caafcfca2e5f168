// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// configurationChecker collects the errors of a Configuration.
type configurationChecker struct{ field.ErrorList }

func (k *configurationChecker) addInvalid(path *field.Path, value any, detail string) {
	k.ErrorList = append(k.ErrorList, field.Invalid(path, value, detail))
}

func (k *configurationChecker) requireOneOf(path *field.Path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		k.ErrorList = append(k.ErrorList, field.NotSupported(path, value, allowed))
	}
}

// Validate returns the invalid values; call Default first.
func (c *Configuration) Validate() field.ErrorList {
	k := &configurationChecker{}
	k.requireOneOf(field.NewPath("logLevel"), c.LogLevel, "debug", "info", "error")
	k.requireOneOf(field.NewPath("logFormat"), c.LogFormat, "json", "text")
	k.checkSource(c.SourceClientConnection)
	k.checkLeaderElection(c.LeaderElection)
	k.checkServers(c.Server, c.Webhooks.HasEnabled())
	k.checkControllers(&c.Controllers)
	if c.Webhooks.NodeAgentAuthorizer.Enabled {
		k.ErrorList = append(k.ErrorList, field.Forbidden(field.NewPath("webhooks", "nodeAgentAuthorizer", "enabled"), "Pergola does not have this webhook; run upstream's resource manager for it"))
	}
	if err := c.Webhooks.Webhooks.Validate(); err != nil {
		k.addInvalid(field.NewPath("webhooks"), field.OmitValueType{}, err.Error())
	}
	slices.SortStableFunc(k.ErrorList, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return k.ErrorList
}

func (k *configurationChecker) checkSource(c ClientConnection) {
	at := field.NewPath("sourceClientConnection", "namespaces")
	if n := len(c.Namespaces); n > 1 {
		k.ErrorList = append(k.ErrorList, field.TooMany(at, n, 1))
	}
	for i, name := range c.Namespaces {
		if name != "" {
			k.requireDNSLabel(at.Index(i), name, validation.DNS1123LabelMaxLength, "")
		}
	}
}

// requireDNSLabel checks names that must be DNS labels, as those of namespaces.
func (k *configurationChecker) requireDNSLabel(path *field.Path, value string, longest int, also string) {
	if len(value) <= longest && len(validation.IsDNS1123Label(value)) == 0 {
		return
	}
	k.addInvalid(path, value, fmt.Sprintf("must have only lower-case letters, digits and -, begin and end with a letter or digit, and have at most %d characters%s", longest, also))
}

func (k *configurationChecker) checkLeaderElection(le LeaderElection) {
	at := field.NewPath("leaderElection")
	k.requireOneOf(at.Child("resourceLock"), le.ResourceLock, "leases")
	for _, wrong := range validation.IsDNS1123Subdomain(le.ResourceName) {
		k.addInvalid(at.Child("resourceName"), le.ResourceName, wrong)
	}
	if le.ResourceNamespace != "" {
		k.requireDNSLabel(at.Child("resourceNamespace"), le.ResourceNamespace, validation.DNS1123LabelMaxLength, "")
	}
	if le.LeaseDuration.Duration <= le.RenewDeadline.Duration {
		k.addInvalid(at.Child("leaseDuration"), le.LeaseDuration.Duration.String(), "must be longer than renewDeadline")
	}
	if le.RetryPeriod.Duration <= 0 || le.RenewDeadline.Duration <= le.RetryPeriod.Duration {
		k.addInvalid(at.Child("renewDeadline"), le.RenewDeadline.Duration.String(), "must be longer than retryPeriod, which must be positive")
	}
}

func (k *configurationChecker) checkServers(s Servers, webhooks bool) {
	at := field.NewPath("server")
	port := func(name string, server Server, none bool) {
		switch allowed := "must be 1 to 65535"; {
		case server.Port >= 1 && server.Port <= 65535, none && server.Port == -1:
		case none:
			k.addInvalid(at.Child(name, "port"), server.Port, allowed+", or -1 for none")
		default:
			k.addInvalid(at.Child(name, "port"), server.Port, allowed)
		}
	}
	port("healthProbes", *s.HealthProbes, true)
	port("metrics", *s.Metrics, true)
	if !webhooks {
		return
	}
	port("webhooks", s.Webhooks.Server, false)
	if s.Webhooks.TLS.ServerCertDir == "" {
		k.ErrorList = append(k.ErrorList, field.Required(at.Child("webhooks", "tls", "serverCertDir"), "webhooks are served with TLS"))
	}
}

// maxClassLength leaves room for upstream's finalizer of a class, whose name may have 63
// characters.
var maxClassLength = validation.LabelValueMaxLength - len(nameAfterSlash(resourcesv1alpha1.FinalizerName)+"-")

func nameAfterSlash(qualified string) string { return qualified[strings.LastIndex(qualified, "/")+1:] }

func (k *configurationChecker) checkControllers(c *Controllers) {
	at := field.NewPath("controllers")
	if class := *c.ResourceClass; class != "" && class != resourcesv1alpha1.ClassAll {
		k.requireDNSLabel(at.Child("resourceClass"), class, maxClassLength, " (it is part of the finalizer); * means all classes")
	}
	if strings.ContainsAny(*c.ClusterID, ":/ \t\n") {
		k.addInvalid(at.Child("clusterID"), *c.ClusterID, "must not contain : or / or blanks, which separate the parts of the origin annotation")
	}
	for name, workers := range map[string]*int{"managedResource": c.ManagedResource.ConcurrentSyncs, "health": c.Health.ConcurrentSyncs,
		"tokenRequestor": c.TokenRequestor.ConcurrentSyncs, "networkPolicy": c.NetworkPolicy.ConcurrentSyncs} {
		if workers != nil && *workers < 1 {
			k.addInvalid(at.Child(name, "concurrentSyncs"), *workers, "must be 1 or more")
		}
	}
	for name, period := range map[string]*metav1.Duration{"managedResource": c.ManagedResource.SyncPeriod, "health": c.Health.SyncPeriod, "garbageCollector": c.GarbageCollector.SyncPeriod} {
		if period != nil && period.Duration < 15*time.Second {
			k.addInvalid(at.Child(name, "syncPeriod"), period.Duration.String(), "must be 15s or more")
		}
	}
	for name, absent := range map[string]bool{"csrApprover": c.CSRApprover.Enabled, "istioClusterConfiguration": c.IstioClusterConfiguration.Enabled,
		"nodeCriticalComponents": c.NodeCriticalComponents.Enabled, "nodeAgentReconciliationDelay": c.NodeAgentReconciliationDelay.Enabled} {
		if absent {
			k.ErrorList = append(k.ErrorList, field.Forbidden(at.Child(name, "enabled"), "Pergola does not have this controller; run upstream's resource manager for it beside this one, with its own class"))
		}
	}
}
