// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/internal/addresses"
)

// ClusterOptions tune the access to one API server. Only Selector has to be set.
type ClusterOptions struct {
	Clock    clock.WithTicker // default: the real clock
	Selector string           // label selector of the live cache, as Keys.Selector gives it
	// WholeKinds are the kinds that the live cache holds completely, with or without the label.
	WholeKinds []schema.GroupKind
	// Namespace limits the live cache to objects of this namespace; the default is all.
	Namespace string
	// MaxInFlight is the number of requests at a time, watches excepted; the default is 16. There
	// is no other client limit.
	MaxInFlight    int
	RequestTimeout time.Duration // for one request, watches excepted; default 30 s
	DialTimeout    time.Duration // default 5 s
	// Cooldown is how long a cluster counts as down after a failed connection; the default is 5 s.
	Cooldown time.Duration
	// Kubectl is the kubectl command with flags for this cluster, for hints; the default is plain
	// kubectl.
	Kubectl string
}

// Cluster is one API server: its REST configuration, discovery, the live cache of managed objects,
// a counter of requests and a breaker. Use one Cluster for all sets of a cluster; it is safe for
// concurrent use.
type Cluster struct {
	name       string
	config     *rest.Config
	clock      clock.WithTicker
	selector   labels.Selector
	wholeKinds map[schema.GroupKind]bool
	namespace  string
	transport  *clusterTransport
	kubectl    string

	http      *http.Client
	rest      rest.Interface
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterfaceWithContext

	ctx    context.Context
	cancel context.CancelFunc

	kinds   discoveredKinds
	schemas schemaCache

	mu             sync.Mutex
	stores         map[schema.GroupVersionResource]*watchedResource
	followedLists  map[FollowedList]*watchedResource
	nextID         int
	changeHandlers map[int]func(ChangeEvent)
}

// NewCluster prepares the access to a cluster. It makes no request: the first use shows whether the
// cluster answers.
func NewCluster(name string, cfg *rest.Config, opts ClusterOptions) (*Cluster, error) {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Selector == "" {
		return nil, fmt.Errorf("cluster %s: no label selector says which objects are cached", name)
	}
	selector, err := labels.Parse(opts.Selector)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: label selector %q: %w", name, opts.Selector, err)
	}
	if opts.MaxInFlight <= 0 {
		opts.MaxInFlight = 16
	}
	setDefault(&opts.RequestTimeout, 30*time.Second)
	setDefault(&opts.DialTimeout, 5*time.Second)
	setDefault(&opts.Cooldown, 5*time.Second)

	cfg = withoutURLUser(cfg)
	g := &clusterTransport{cluster: name, host: cfg.Host, clock: opts.Clock, timeout: opts.RequestTimeout,
		cooldown: opts.Cooldown, slots: make(chan struct{}, opts.MaxInFlight), counts: RequestCounts{}}
	config := dynamic.ConfigFor(cfg)
	config.QPS, config.Burst, config.RateLimiter = -1, 0, nil
	config.WarningHandler = rest.NoWarnings{}
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: opts.DialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	config.Wrap(g.wrap)

	c := &Cluster{name: name, config: config, clock: opts.Clock, selector: selector, namespace: opts.Namespace, transport: g, kubectl: opts.Kubectl,
		// An autoscaler decides about replicas even without the label.
		wholeKinds: map[schema.GroupKind]bool{hpaKind: true},
		stores:     map[schema.GroupVersionResource]*watchedResource{}, followedLists: map[FollowedList]*watchedResource{}, changeHandlers: map[int]func(ChangeEvent){}}
	for _, kind := range opts.WholeKinds {
		c.wholeKinds[kind] = true
	}
	if err := c.connect(); err != nil {
		return nil, addresses.RedactError(fmt.Errorf("cluster %s: %w", name, err))
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// withoutURLUser removes the user from the address of a cluster, which appears in logs and errors.
// The user becomes the basic-auth credential if there is no other one.
func withoutURLUser(cfg *rest.Config) *rest.Config {
	address, err := url.Parse(cfg.Host)
	if err != nil || address.User == nil {
		return cfg
	}
	out := rest.CopyConfig(cfg)
	if cfg.BearerToken == "" && cfg.BearerTokenFile == "" && cfg.Username == "" && cfg.ExecProvider == nil && cfg.AuthProvider == nil {
		out.Username = address.User.Username()
		out.Password, _ = address.User.Password()
	}
	address.User = nil
	out.Host = address.String()
	return out
}

func (c *Cluster) connect() (err error) {
	if c.http, err = rest.HTTPClientFor(c.config); err != nil {
		return fmt.Errorf("reading the REST configuration: %w", err)
	}
	plain := rest.CopyConfig(c.config)
	plain.GroupVersion = &schema.GroupVersion{}
	if c.rest, err = rest.UnversionedRESTClientForConfigAndClient(plain, c.http); err != nil {
		return fmt.Errorf("creating the REST client: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(c.config, c.http); err != nil {
		return fmt.Errorf("creating the dynamic client: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, c.http)
	if err != nil {
		return fmt.Errorf("creating the discovery client: %w", err)
	}
	c.discovery = d
	return nil
}

// Name returns the name of the cluster in messages.
func (c *Cluster) Name() string { return c.name }

// HasWholeCache reports whether the live cache holds all objects of a kind, so an object that is
// not cached does not exist.
func (c *Cluster) HasWholeCache(kind schema.GroupKind) bool { return c.wholeKinds[kind] }

// Close stops all watches. The cluster must not be used afterwards.
func (c *Cluster) Close() {
	c.cancel()
	c.http.CloseIdleConnections()
}

// Requests returns the number of requests made so far.
func (c *Cluster) Requests() RequestCounts { return c.transport.snapshot() }

// RESTConfig returns a configuration for further clients, which share counter, limit and breaker.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Dynamic returns a client on the same connections.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// checkReachable fails at once while the cluster is down. It makes a request only after a failed
// one, because the cache may be outdated then.
func (c *Cluster) checkReachable(ctx context.Context) error {
	if err := c.transport.downError(); err != nil {
		return err
	}
	if !c.transport.hasLastFailed() {
		return nil
	}
	return c.rest.Get().AbsPath("/version").Do(withoutLogging(ctx)).Error()
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}
