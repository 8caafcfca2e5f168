// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/garbagecollector"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/networkpolicy"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/tokenrequestor"
	resourcewebhooks "github.com/pergola-dev/pergola/controllers/resourcemanager/webhooks"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/internal/addresses"
)

// Role runs `pergola resource-manager`: the Manager and everything else that its configuration
// enables, in one process.
type Role struct {
	Configuration *Configuration
	// Source and Target are the clusters; a nil Target means Source.
	Source, Target *rest.Config
	// HealthRules take precedence over those of the kinds; it is nil for none.
	HealthRules health.Rules
	// ExistenceOnly and Force are those of Options.
	ExistenceOnly, Force bool
	// Version is the version of this program.
	Version string
	Log     *slog.Logger
}

// roleProcess are the components of a Role while it is assembled.
type roleProcess struct {
	role              *Role
	controllerManager manager.Manager
	source, target    *apply.Cluster
	resourceManager   *Manager
	// lease is nil without leader election.
	lease      *lease
	definition *definitionCheck
	// isShuttingDown reports whether a shutdown was requested.
	isShuttingDown func() bool
	// targetCluster is the target cluster for controller-runtime; it is nil if it is the source.
	targetCluster cluster.Cluster
}

// Run runs until ctx ends. It fails when the lease is lost.
func (r *Role) Run(ctx context.Context) error {
	p := &roleProcess{role: r, isShuttingDown: func() bool { return ctx.Err() != nil }}
	if err := p.openClusters(); err != nil {
		return err
	}
	defer p.source.Close()
	if p.target != p.source {
		defer p.target.Close()
	}
	for _, add := range []func(context.Context) error{p.createControllerManager, p.addManagedResources, p.addGarbageCollector, p.addTokenRequestor, p.addNetworkPolicy, p.addWebhooks, p.addProbes} {
		if err := add(ctx); err != nil {
			return fmt.Errorf("preparing the resource manager: %w", err)
		}
	}
	defer ctrlmetrics.Registry.Unregister(p.resourceManager)
	p.logStart()
	err := p.controllerManager.Start(ctx)
	if err != nil && err.Error() == leaseLostMessage {
		return fmt.Errorf("the lease %s is lost, because it was not renewed for %s or another instance took it; stopped, so that only one instance works: %w",
			p.lease.Describe(), r.Configuration.LeaderElection.RenewDeadline.Duration, err)
	}
	return err
}

// logStart logs clusters, class, namespaces, lease and version.
func (p *roleProcess) logStart() {
	c := p.role.Configuration
	namespaces, lease := "all", "none"
	if n := c.namespace(); n != "" {
		namespaces = n
	}
	if p.lease != nil {
		lease = p.lease.Describe()
	}
	p.role.Log.Info("starting", "source", p.source.RESTConfig().Host, "target", p.target.RESTConfig().Host, "class", *c.Controllers.ResourceClass,
		"namespaces", namespaces, "lease", lease, "version", p.role.Version)
}

// namespace returns the namespace of the ManagedResources, or "" for all.
func (c *Configuration) namespace() string {
	if n := c.SourceClientConnection.Namespaces; len(n) == 1 {
		return n[0]
	}
	return ""
}

func (p *roleProcess) openClusters() (err error) {
	c := p.role.Configuration
	selector := applyKeys(*c.Controllers.ManagedResource.ManagedByLabelValue).Selector()
	options := SourceOptions(c.namespace())
	options.Selector = selector
	if p.source, err = conventions.NewCluster("source", p.role.Source, options); err != nil {
		return err
	}
	p.target = p.source
	if p.role.Target == nil && c.namespace() == "" {
		return nil
	}
	// A source that is limited to a namespace cannot also be the target, even for the same cluster.
	config := p.role.Target
	if config == nil {
		config = p.role.Source
	}
	if p.target, err = conventions.NewCluster("target", config, apply.ClusterOptions{Selector: selector}); err != nil {
		p.source.Close()
	}
	return err
}

// createControllerManager prepares the lease, the servers and the caches of the controllers.
func (p *roleProcess) createControllerManager(context.Context) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme), gardencorev1beta1.AddToScheme(scheme)); err != nil {
		return err
	}
	c, le := p.role.Configuration, p.role.Configuration.LeaderElection
	options := manager.Options{
		// see probes
		Scheme: scheme, Logger: logr.FromSlogHandler(electionLogHandler{p.role.Log.Handler(), p.isShuttingDown}), HealthProbeBindAddress: "0",
		Metrics:        metricsserver.Options{BindAddress: c.Server.Metrics.Address(), ExtraHandlers: p.profileHandlers()},
		LeaderElection: *le.LeaderElect, LeaderElectionID: le.ResourceName, LeaderElectionNamespace: p.leaseNamespace(), LeaderElectionReleaseOnCancel: true,
		// A process may run a Role again; only one Role at a time has the metrics.
		Controller:    config.Controller{SkipNameValidation: ptr.To(true)},
		LeaseDuration: &le.LeaseDuration.Duration, RenewDeadline: &le.RenewDeadline.Duration, RetryPeriod: &le.RetryPeriod.Duration,
	}
	if c.Webhooks.HasEnabled() {
		folder := c.Server.Webhooks.TLS.ServerCertDir
		for _, name := range []string{"tls.crt", "tls.key"} {
			if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
				return fmt.Errorf("server.webhooks.tls.serverCertDir: %w", err)
			}
		}
		options.WebhookServer = webhook.NewServer(webhook.Options{Host: c.Server.Webhooks.BindAddress, Port: c.Server.Webhooks.Port, CertDir: folder})
	}
	if p.role.Target == nil {
		options.Cache.ByObject = networkpolicy.CacheByObject()
	}
	var err error
	if *le.LeaderElect {
		if p.lease, err = newLease(p.role.Source, p.leaseNamespace(), le, p.role.Log); err != nil {
			return err
		}
		options.LeaderElectionResourceLockInterface = p.lease
	}
	if p.controllerManager, err = manager.New(p.role.Source, options); err != nil {
		return fmt.Errorf("the source cluster %s: %w", addresses.RedactUserInfo(p.role.Source.Host), err)
	}
	if p.lease != nil {
		p.lease.LockConfig.EventRecorder = leaseEvents{p.controllerManager}
	}
	if p.role.Target == nil {
		return nil
	}
	p.targetCluster, err = cluster.New(p.role.Target, func(o *cluster.Options) {
		o.Scheme, o.Logger, o.Cache = scheme, options.Logger, cache.Options{ByObject: networkpolicy.CacheByObject()}
	})
	if err != nil {
		return fmt.Errorf("the target cluster %s: %w", addresses.RedactUserInfo(p.role.Target.Host), err)
	}
	return p.controllerManager.Add(p.targetCluster)
}

// profileHandlers returns the handlers that debugging adds.
func (p *roleProcess) profileHandlers() map[string]http.Handler {
	if d := p.role.Configuration.Debugging; d == nil || !ptr.Deref(d.EnableProfiling, false) {
		return nil
	}
	return map[string]http.Handler{"/debug/pprof/": http.HandlerFunc(pprof.Index), "/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol": http.HandlerFunc(pprof.Symbol), "/debug/pprof/trace": http.HandlerFunc(pprof.Trace), "/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline)}
}

// leaseNamespace defaults to the namespace of the ManagedResources, then to that of the pod.
func (p *roleProcess) leaseNamespace() string {
	if n := p.role.Configuration.LeaderElection.ResourceNamespace; n != "" {
		return n
	}
	if n := p.role.Configuration.namespace(); n != "" {
		return n
	}
	if own, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return strings.TrimSpace(string(own))
	}
	return "garden"
}

func (p *roleProcess) addManagedResources(context.Context) error {
	k, recorder := p.role.Configuration.Controllers, p.controllerManager.GetEventRecorder("gardener-resource-manager")
	work, err := New(Options{
		Source: p.source, Target: p.target, Class: *k.ResourceClass, ClusterID: *k.ClusterID, Namespace: p.role.Configuration.namespace(),
		Timing: Timing{Workers: *k.ManagedResource.ConcurrentSyncs, SyncPeriod: k.ManagedResource.SyncPeriod.Duration}, ManagedBy: *k.ManagedResource.ManagedByLabelValue,
		LeaveToGarbageCollector: k.GarbageCollector.Enabled, HealthRules: p.role.HealthRules, ExistenceOnly: p.role.ExistenceOnly, Force: p.role.Force, Version: p.role.Version, Log: p.role.Log,
		Event: func(mr *resourcesv1alpha1.ManagedResource, reason, message string) {
			recorder.Eventf(mr, nil, corev1.EventTypeWarning, reason, "Reconcile", "%s", message)
		},
	})
	if err != nil {
		return err
	}
	if err := ctrlmetrics.Registry.Register(work); err != nil {
		return err
	}
	p.resourceManager = work
	if p.definition, err = newDefinitionCheck(p.role.Source, p.role.Log); err != nil {
		return err
	}
	return errors.Join(p.controllerManager.Add(p.definition), p.controllerManager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-p.definition.served:
			return work.Start(ctx)
		case <-ctx.Done():
			return nil
		}
	})))
}

func (p *roleProcess) addGarbageCollector(context.Context) error {
	k := p.role.Configuration.Controllers.GarbageCollector
	if !k.Enabled {
		return nil
	}
	return garbagecollector.Add(p.controllerManager, garbagecollector.Options{Target: p.target.RESTConfig(), Interval: k.SyncPeriod.Duration})
}

func (p *roleProcess) addTokenRequestor(context.Context) error {
	k := p.role.Configuration.Controllers.TokenRequestor
	if !k.Enabled {
		return nil
	}
	recorder := p.controllerManager.GetEventRecorder("token-requestor")
	return tokenrequestor.Add(p.controllerManager, tokenrequestor.Options{
		Source: p.source.RESTConfig(), Target: p.target.RESTConfig(), Namespaces: p.role.Configuration.SourceClientConnection.Namespaces,
		Audiences: []string{tokenrequestor.AudienceGardener}, Workers: *k.ConcurrentSyncs,
		Event: func(secret *corev1.Secret, reason, message string) {
			recorder.Eventf(secret, nil, corev1.EventTypeWarning, reason, "Request", "%s", message)
		},
	})
}

func (p *roleProcess) addNetworkPolicy(context.Context) error {
	k := p.role.Configuration.Controllers.NetworkPolicy
	if !k.Enabled {
		return nil
	}
	return networkpolicy.Add(p.controllerManager, networkpolicy.Options{Target: p.targetCluster, Workers: *k.ConcurrentSyncs, NamespaceSelectors: k.NamespaceSelectors,
		IngressControllerSelector: k.IngressControllerSelector})
}

func (p *roleProcess) addWebhooks(ctx context.Context) error {
	if !p.role.Configuration.Webhooks.HasEnabled() {
		return nil
	}
	live, err := client.New(p.target.RESTConfig(), client.Options{Scheme: p.controllerManager.GetScheme()})
	if err != nil {
		return err
	}
	o := resourcewebhooks.Options{Webhooks: p.role.Configuration.Webhooks.Webhooks, Source: p.controllerManager.GetAPIReader(), Target: live, Log: p.role.Log}
	// Frequent lookups are cached. ConfigMaps and Services are read one by one: few of many matter.
	if p.targetCluster == nil {
		o.Target, o.Live = p.controllerManager.GetClient(), p.controllerManager.GetAPIReader()
	} else {
		o.Target, o.Live = p.targetCluster.GetClient(), p.targetCluster.GetAPIReader()
	}
	o.Target = &uncachedReader{Reader: o.Target, live: live}
	return resourcewebhooks.Add(ctx, p.controllerManager, o)
}

// uncachedReader reads ConfigMaps and Services without the cache.
type uncachedReader struct {
	client.Reader
	live client.Reader
}

func (u *uncachedReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	switch o.(type) {
	case *corev1.ConfigMap, *corev1.Service:
		return u.live.Get(ctx, key, o, opts...)
	}
	return u.Reader.Get(ctx, key, o, opts...)
}

func (u *uncachedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list.(type) {
	case *corev1.ConfigMapList, *corev1.ServiceList:
		return u.live.List(ctx, list, opts...)
	}
	return u.Reader.List(ctx, list, opts...)
}
