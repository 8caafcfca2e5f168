package resourcemanager

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	sigsyaml "sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/networkpolicy"
	"github.com/pergola-dev/pergola/controllers/resourcewebhooks"
)

// Configuration is upstream's component configuration of gardener-resource-manager
// (pkg/apis/config/resourcemanager/v1alpha1), so that workloads which are configured for that one can run this one.
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

// ClientConnection is the access to a cluster. Limits of the client are read and not used: the API server's own priority and
// fairness decides, and requests at a time are bounded.
type ClientConnection struct {
	// Kubeconfig is a path; without one it is the access of the pod.
	Kubeconfig         string           `json:"kubeconfig"`
	AcceptContentTypes string           `json:"acceptContentTypes"`
	ContentType        string           `json:"contentType"`
	QPS                float32          `json:"qps"`
	Burst              int32            `json:"burst"`
	CacheResyncPeriod  *metav1.Duration `json:"cacheResyncPeriod,omitempty"`
	// Namespaces of the source in which ManagedResources are; of the target nothing is limited by it. None are all.
	Namespaces []string `json:"namespaces,omitempty"`
}

// LeaderElection is about the lease.
type LeaderElection struct {
	LeaderElect       *bool           `json:"leaderElect"`
	LeaseDuration     metav1.Duration `json:"leaseDuration"`
	RenewDeadline     metav1.Duration `json:"renewDeadline"`
	RetryPeriod       metav1.Duration `json:"retryPeriod"`
	ResourceLock      string          `json:"resourceLock"`
	ResourceName      string          `json:"resourceName"`
	ResourceNamespace string          `json:"resourceNamespace"`
}

// Servers are what is listened on.
type Servers struct {
	Webhooks     WebhookServer `json:"webhooks"`
	HealthProbes *Server       `json:"healthProbes,omitempty"`
	Metrics      *Server       `json:"metrics,omitempty"`
}

// Server is an address; port 0 stands for the default, a negative one for none.
type Server struct {
	BindAddress string `json:"bindAddress"`
	Port        int    `json:"port"`
}

// Address is host and port as listeners take it, "0" for none.
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

// WebhookServer is the address and the folder of tls.crt and tls.key.
type WebhookServer struct {
	Server `json:",inline"`
	TLS    struct {
		ServerCertDir string `json:"serverCertDir"`
	} `json:"tls"`
}

// Debugging adds profiles to the server of metrics.
type Debugging struct {
	EnableProfiling           *bool `json:"enableProfiling,omitempty"`
	EnableContentionProfiling *bool `json:"enableContentionProfiling,omitempty"`
}

// Controllers are the settings of each.
type Controllers struct {
	ClusterID        *string          `json:"clusterID,omitempty"`
	ResourceClass    *string          `json:"resourceClass,omitempty"`
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`

	ManagedResource struct {
		Workers             `json:",inline"`
		AlwaysUpdate        *bool   `json:"alwaysUpdate,omitempty"`
		ManagedByLabelValue *string `json:"managedByLabelValue,omitempty"`
	} `json:"managedResource"`
	// Health is judged whenever an object changes, and with each look at a ManagedResource.
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

	// What Pergola does not do.
	CSRApprover                  Absent `json:"csrApprover"`
	IstioClusterConfiguration    Absent `json:"istioClusterConfiguration"`
	NodeCriticalComponents       Absent `json:"nodeCriticalComponents"`
	NodeAgentReconciliationDelay Absent `json:"nodeAgentReconciliationDelay"`
}

// Workers of a controller.
type Workers struct {
	ConcurrentSyncs *int             `json:"concurrentSyncs,omitempty"`
	SyncPeriod      *metav1.Duration `json:"syncPeriod,omitempty"`
}

// Absent is a part of upstream's resource manager that this one lacks: it can be configured and not turned on.
type Absent struct {
	Enabled          bool             `json:"enabled"`
	ConcurrentSyncs  *int             `json:"concurrentSyncs,omitempty"`
	MachineNamespace *string          `json:"machineNamespace,omitempty"`
	Backoff          *metav1.Duration `json:"backoff,omitempty"`
	MinDelay         *metav1.Duration `json:"minDelay,omitempty"`
	MaxDelay         *metav1.Duration `json:"maxDelay,omitempty"`
}

// Webhooks are those that are served.
type Webhooks struct {
	resourcewebhooks.Webhooks `json:",inline"`
	NodeAgentAuthorizer       struct {
		Enabled                           bool    `json:"enabled"`
		MachineNamespace                  *string `json:"machineNamespace,omitempty"`
		AuthorizeWithSelectors            *bool   `json:"authorizeWithSelectors,omitempty"`
		AuthorizeWithSelectorsFeatureGate *bool   `json:"authorizeWithSelectorsFeatureGate,omitempty"`
	} `json:"nodeAgentAuthorizer"`
}

const (
	configurationVersion = "resourcemanager.config.gardener.cloud/v1alpha1"
	configurationKind    = "ResourceManagerConfiguration"
)

// ReadConfiguration reads a file. Fields that do not exist and values that make no sense are errors with their place.
func ReadConfiguration(path string) (*Configuration, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	c := &Configuration{}
	if err := sigsyaml.UnmarshalStrict(raw, c); err != nil {
		return nil, misfit(path, raw, err)
	}
	if c.APIVersion != configurationVersion || c.Kind != configurationKind {
		return nil, fmt.Errorf("%s: want apiVersion %s and kind %s, have %q and %q", path, configurationVersion, configurationKind, c.APIVersion, c.Kind)
	}
	c.Default()
	if problems := c.Validate(); len(problems) > 0 {
		var lines []error
		for _, p := range problems {
			lines = append(lines, fmt.Errorf("%s:%s%w", path, lineOf(raw, p.Field), p))
		}
		return nil, errors.Join(lines...)
	}
	return c, nil
}

var unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)

// misfit is the error for a file that does not have the form of a configuration.
func misfit(path string, raw []byte, err error) error {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "), "while decoding JSON: json: ")
	m := unknownField.FindStringSubmatch(text)
	var root yaml.Node
	if m == nil || yaml.Unmarshal(raw, &root) != nil {
		return fmt.Errorf("%s: %s", path, text)
	}
	name := m[1][strings.LastIndex(m[1], ".")+1:]
	line, at := placeOf(&root, name)
	return fmt.Errorf("%s:%d: unknown field %q", path, line, at)
}

// placeOf finds a key in a document: its line and its path.
func placeOf(node *yaml.Node, name string) (line int, path string) {
	for i, inner := range node.Content {
		isKey := node.Kind == yaml.MappingNode && i%2 == 0
		if isKey && inner.Value == name {
			return inner.Line, name
		}
		if isKey {
			continue
		}
		if line, path = placeOf(inner, name); line == 0 {
			continue
		}
		if node.Kind == yaml.MappingNode {
			path = node.Content[i-1].Value + "." + path
		}
		return line, path
	}
	return 0, ""
}

// lineOf is the line of a field in a file as "12: ", or of the nearest field above it that is there.
func lineOf(raw []byte, path string) string {
	var root yaml.Node
	if yaml.NewDecoder(bytes.NewReader(raw)).Decode(&root) != nil || len(root.Content) == 0 {
		return " "
	}
	node, line := root.Content[0], 1
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		i := slices.IndexFunc(node.Content, func(n *yaml.Node) bool { return n.Value == name })
		if node.Kind != yaml.MappingNode || i < 0 || i%2 != 0 {
			break
		}
		line, node = node.Content[i].Line, node.Content[i+1]
	}
	return fmt.Sprintf("%d: ", line)
}

// Default fills in what is not set, with upstream's values.
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

// Validate finds values that make no sense.
func (c *Configuration) Validate() field.ErrorList {
	var out field.ErrorList
	oneOf := func(path *field.Path, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			out = append(out, field.NotSupported(path, value, allowed))
		}
	}
	oneOf(field.NewPath("logLevel"), c.LogLevel, "debug", "info", "error")
	oneOf(field.NewPath("logFormat"), c.LogFormat, "json", "text")
	oneOf(field.NewPath("leaderElection", "resourceLock"), c.LeaderElection.ResourceLock, "leases")
	if n := c.SourceClientConnection.Namespaces; len(n) > 1 {
		out = append(out, field.TooMany(field.NewPath("sourceClientConnection", "namespaces"), len(n), 1))
	}
	le, at := c.LeaderElection, field.NewPath("leaderElection")
	if le.LeaseDuration.Duration <= le.RenewDeadline.Duration {
		out = append(out, field.Invalid(at.Child("leaseDuration"), le.LeaseDuration.Duration.String(), "must be longer than renewDeadline"))
	}
	if le.RetryPeriod.Duration <= 0 || le.RenewDeadline.Duration <= le.RetryPeriod.Duration {
		out = append(out, field.Invalid(at.Child("renewDeadline"), le.RenewDeadline.Duration.String(), "must be longer than retryPeriod, and that above zero"))
	}
	at = field.NewPath("controllers")
	k := c.Controllers
	positive := func(path *field.Path, workers *int) {
		if workers != nil && *workers < 1 {
			out = append(out, field.Invalid(path.Child("concurrentSyncs"), *workers, "must be 1 or more"))
		}
	}
	positive(at.Child("managedResource"), k.ManagedResource.ConcurrentSyncs)
	positive(at.Child("health"), k.Health.ConcurrentSyncs)
	positive(at.Child("tokenRequestor"), k.TokenRequestor.ConcurrentSyncs)
	positive(at.Child("networkPolicy"), k.NetworkPolicy.ConcurrentSyncs)
	for name, period := range map[string]*metav1.Duration{"managedResource": k.ManagedResource.SyncPeriod, "health": k.Health.SyncPeriod, "garbageCollector": k.GarbageCollector.SyncPeriod} {
		if period != nil && period.Duration < 15*time.Second {
			out = append(out, field.Invalid(at.Child(name, "syncPeriod"), period.Duration.String(), "must be 15s or more"))
		}
	}
	for name, absent := range map[string]bool{"csrApprover": k.CSRApprover.Enabled, "istioClusterConfiguration": k.IstioClusterConfiguration.Enabled,
		"nodeCriticalComponents": k.NodeCriticalComponents.Enabled, "nodeAgentReconciliationDelay": k.NodeAgentReconciliationDelay.Enabled} {
		if absent {
			out = append(out, field.Forbidden(at.Child(name, "enabled"), "Pergola has no such controller; run upstream's resource manager for it beside this one, with a class of its own"))
		}
	}
	if c.Webhooks.NodeAgentAuthorizer.Enabled {
		out = append(out, field.Forbidden(field.NewPath("webhooks", "nodeAgentAuthorizer", "enabled"), "Pergola has no such webhook; run upstream's resource manager for it"))
	}
	if err := c.Webhooks.Webhooks.Validate(); err != nil {
		out = append(out, field.Invalid(field.NewPath("webhooks"), field.OmitValueType{}, err.Error()))
	}
	if any := c.Webhooks.Any(); any && c.Server.Webhooks.TLS.ServerCertDir == "" {
		out = append(out, field.Required(field.NewPath("server", "webhooks", "tls", "serverCertDir"), "webhooks are served with TLS"))
	}
	slices.SortStableFunc(out, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return out
}
