// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/networkpolicy"
	resourcewebhooks "github.com/pergola-dev/pergola/controllers/resourcemanager/webhooks"
	"github.com/pergola-dev/pergola/internal/settingsfile"
)

// Configuration is upstream's component configuration of gardener-resource-manager
// (pkg/apis/config/resourcemanager/v1alpha1), so that existing configurations work here.
type Configuration struct {
	metav1.TypeMeta        `json:",inline"`
	SourceClientConnection ClientConnection  `json:"sourceClientConnection"`
	TargetClientConnection *ClientConnection `json:"targetClientConnection,omitempty"`
	LeaderElection         LeaderElection    `json:"leaderElection"`
	Server                 Servers           `json:"server"`
	Debugging              *Debugging        `json:"debugging,omitempty"`
	LogLevel               string            `json:"logLevel"`
	LogFormat              string            `json:"logFormat"`
	Controllers            Controllers       `json:"controllers"`
	Webhooks               Webhooks          `json:"webhooks"`
}

// ClientConnection is the access to a cluster. Client-side rate limits are ignored: the API
// server's priority and fairness decides, and concurrent requests are bounded.
type ClientConnection struct {
	// Kubeconfig is a path; empty means the access of the pod.
	Kubeconfig         string           `json:"kubeconfig"`
	AcceptContentTypes string           `json:"acceptContentTypes"`
	ContentType        string           `json:"contentType"`
	QPS                float32          `json:"qps"`
	Burst              int32            `json:"burst"`
	CacheResyncPeriod  *metav1.Duration `json:"cacheResyncPeriod,omitempty"`
	// Namespaces of the source that hold the ManagedResources; empty means all. They do not limit
	// the target.
	Namespaces []string `json:"namespaces,omitempty"`
}

// LeaderElection configures the lease.
type LeaderElection struct {
	LeaderElect       *bool           `json:"leaderElect"`
	LeaseDuration     metav1.Duration `json:"leaseDuration"`
	RenewDeadline     metav1.Duration `json:"renewDeadline"`
	RetryPeriod       metav1.Duration `json:"retryPeriod"`
	ResourceLock      string          `json:"resourceLock"`
	ResourceName      string          `json:"resourceName"`
	ResourceNamespace string          `json:"resourceNamespace"`
}

// Servers are the listeners of the process.
type Servers struct {
	Webhooks     WebhookServer `json:"webhooks"`
	HealthProbes *Server       `json:"healthProbes,omitempty"`
	Metrics      *Server       `json:"metrics,omitempty"`
}

// Server is a listen address; port 0 means the default, a negative port disables the server.
type Server struct {
	BindAddress string `json:"bindAddress"`
	Port        int    `json:"port"`
}

// Address returns host and port for a listener, or "0" if the server is disabled.
func (s Server) Address() string {
	if s.Port < 0 {
		return "0"
	}
	host := s.BindAddress
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d", host, s.Port)
}

// WebhookServer is the listen address and the folder of tls.crt and tls.key.
type WebhookServer struct {
	Server `json:",inline"`
	TLS    struct {
		ServerCertDir string `json:"serverCertDir"`
	} `json:"tls"`
}

// Debugging adds profiles to the metrics server.
type Debugging struct {
	EnableProfiling           *bool `json:"enableProfiling,omitempty"`
	EnableContentionProfiling *bool `json:"enableContentionProfiling,omitempty"`
}

// Controllers holds the settings of each controller.
type Controllers struct {
	ClusterID        *string          `json:"clusterID,omitempty"`
	ResourceClass    *string          `json:"resourceClass,omitempty"`
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`

	ManagedResource struct {
		Workers             `json:",inline"`
		AlwaysUpdate        *bool   `json:"alwaysUpdate,omitempty"`
		ManagedByLabelValue *string `json:"managedByLabelValue,omitempty"`
	} `json:"managedResource"`
	// Health is judged whenever an object changes, and with each run for a ManagedResource.
	Health           Workers `json:"health"`
	GarbageCollector struct {
		Enabled    bool             `json:"enabled"`
		SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	} `json:"garbageCollector"`
	TokenRequestor struct {
		Enabled         bool `json:"enabled"`
		ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	} `json:"tokenRequestor"`
	NetworkPolicy struct {
		Enabled                   bool                                     `json:"enabled"`
		ConcurrentSyncs           *int                                     `json:"concurrentSyncs,omitempty"`
		NamespaceSelectors        []metav1.LabelSelector                   `json:"namespaceSelectors,omitempty"`
		IngressControllerSelector *networkpolicy.IngressControllerSelector `json:"ingressControllerSelector,omitempty"`
	} `json:"networkPolicy"`

	// Pergola does not have these controllers.
	CSRApprover                  UnsupportedController `json:"csrApprover"`
	IstioClusterConfiguration    UnsupportedController `json:"istioClusterConfiguration"`
	NodeCriticalComponents       UnsupportedController `json:"nodeCriticalComponents"`
	NodeAgentReconciliationDelay UnsupportedController `json:"nodeAgentReconciliationDelay"`
}

// Workers sets concurrency and sync period of a controller.
type Workers struct {
	ConcurrentSyncs *int             `json:"concurrentSyncs,omitempty"`
	SyncPeriod      *metav1.Duration `json:"syncPeriod,omitempty"`
}

// UnsupportedController is a controller of upstream's resource manager that Pergola lacks. It can
// be configured, but not enabled.
type UnsupportedController struct {
	Enabled          bool             `json:"enabled"`
	ConcurrentSyncs  *int             `json:"concurrentSyncs,omitempty"`
	MachineNamespace *string          `json:"machineNamespace,omitempty"`
	Backoff          *metav1.Duration `json:"backoff,omitempty"`
	MinDelay         *metav1.Duration `json:"minDelay,omitempty"`
	MaxDelay         *metav1.Duration `json:"maxDelay,omitempty"`
}

// Webhooks selects the webhooks to serve.
type Webhooks struct {
	resourcewebhooks.Webhooks `json:",inline"`
	NodeAgentAuthorizer       struct {
		Enabled                           bool    `json:"enabled"`
		MachineNamespace                  *string `json:"machineNamespace,omitempty"`
		AuthorizeWithSelectors            *bool   `json:"authorizeWithSelectors,omitempty"`
		AuthorizeWithSelectorsFeatureGate *bool   `json:"authorizeWithSelectorsFeatureGate,omitempty"`
	} `json:"nodeAgentAuthorizer"`
}

var configurationKind = metav1.TypeMeta{APIVersion: "resourcemanager.config.gardener.cloud/v1alpha1", Kind: "ResourceManagerConfiguration"}

// ReadConfiguration reads a file. It reports unknown fields and invalid values with their
// positions.
func ReadConfiguration(path string) (*Configuration, error) {
	c := &Configuration{}
	if err := settingsfile.Read(path, configurationKind, c); err != nil {
		return nil, err
	}
	return c, nil
}

// Default sets unset fields to upstream's values.
func (c *Configuration) Default() {
	if c.TargetClientConnection == nil {
		c.TargetClientConnection = &ClientConnection{}
	}
	setDefault(&c.LogLevel, "info")
	setDefault(&c.LogFormat, "json")
	le := &c.LeaderElection
	if le.LeaderElect == nil {
		le.LeaderElect = ptr.To(true)
	}
	setDefault(&le.ResourceLock, "leases")
	setDefault(&le.ResourceName, "gardener-resource-manager")
	setDefault(&le.LeaseDuration.Duration, 15*time.Second)
	setDefault(&le.RenewDeadline.Duration, 10*time.Second)
	setDefault(&le.RetryPeriod.Duration, 2*time.Second)
	if c.Server.HealthProbes == nil {
		c.Server.HealthProbes = &Server{}
	}
	if c.Server.Metrics == nil {
		c.Server.Metrics = &Server{}
	}
	setDefault(&c.Server.HealthProbes.Port, 8081)
	setDefault(&c.Server.Metrics.Port, 8080)
	setDefault(&c.Server.Webhooks.Port, 9449)
	k := &c.Controllers
	k.ClusterID, k.ResourceClass = ptr.To(ptr.Deref(k.ClusterID, "")), ptr.To(ptr.Deref(k.ResourceClass, resourcesv1alpha1.ClassDefault))
	k.ManagedResource.Workers.setDefaults()
	k.Health.setDefaults()
	k.ManagedResource.ManagedByLabelValue = ptr.To(ptr.Deref(k.ManagedResource.ManagedByLabelValue, resourcesv1alpha1.ManagedByGardener))
	setDuration(&k.GarbageCollector.SyncPeriod, time.Hour)
	for _, workers := range []**int{&k.TokenRequestor.ConcurrentSyncs, &k.NetworkPolicy.ConcurrentSyncs} {
		if *workers == nil {
			*workers = ptr.To(5)
		}
	}
}

func (w *Workers) setDefaults() {
	if w.ConcurrentSyncs == nil {
		w.ConcurrentSyncs = ptr.To(5)
	}
	setDuration(&w.SyncPeriod, time.Minute)
}

func setDefault[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}

func setDuration(at **metav1.Duration, value time.Duration) {
	if *at == nil {
		*at = &metav1.Duration{Duration: value}
	}
}
