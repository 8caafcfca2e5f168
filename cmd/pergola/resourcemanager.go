// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pergola-dev/pergola/controllers/resourcemanager"
	"github.com/pergola-dev/pergola/internal/telemetry"
)

// resourceManagerCommand holds the flags of `pergola resource-manager`.
type resourceManagerCommand struct {
	config, rules                                   string
	kubeconfig, target, class, clusterID, namespace string
	workers                                         int
	sync                                            time.Duration
	leaderElection                                  bool
	leaseNamespace, leaseName                       string
	ports                                           portFlags
	log                                             logFlags
	collector, tokenController, force               bool
}

func newResourceManager() *cobra.Command {
	var r resourceManagerCommand
	cmd := &cobra.Command{
		Use:   "resource-manager",
		Short: "Reconcile the ManagedResources of a class",
		Long: `Watches the ManagedResources of a class in a source cluster, and applies the objects in their
Secrets to a target cluster by server-side apply. It deletes objects that are no longer in the
Secrets, repairs drift at once, and reports health and progress in conditions. It replaces
gardener-resource-manager for this class: stop gardener-resource-manager first, because both hold
the same lease by default.

--config reads the configuration file of gardener-resource-manager (kind
ResourceManagerConfiguration). The file can also enable the garbage collector, the token requestor,
network policies and webhooks. Flags take precedence over it.

/healthz and /readyz are on the health port, and /metrics is on the metrics port, both without TLS.
/readyz names the missing parts. OTEL_EXPORTER_OTLP_ENDPOINT sets the address that gets traces.`,
		Example: `  pergola resource-manager --class seed
  pergola resource-manager --config /etc/gardener-resource-manager-config/config.yaml
  pergola resource-manager --kubeconfig runtime.yaml --target-kubeconfig virtual.yaml --namespace garden --cluster-id landscape`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&r.config, "config", "", "configuration file")
	addHealthRulesFlag(cmd, &r.rules)
	flags.BoolVar(&r.force, "force-conflicts", false, "take fields over from other field managers, as upstream does; by default they are reported as conflicts")
	flags.StringVar(&r.kubeconfig, "kubeconfig", "", "kubeconfig of the source cluster (default in a pod: its own access; else KUBECONFIG)")
	flags.StringVar(&r.target, "target-kubeconfig", "", "kubeconfig of the target cluster (default: the source cluster)")
	flags.StringVar(&r.class, "class", "", "class of the ManagedResources (spec.class), up to 37 letters, digits and -; * for all (default: ManagedResources without a class)")
	flags.StringVar(&r.clusterID, "cluster-id", "", "identity of the source cluster, a prefix of the origin annotation if the target is another cluster; without : and /")
	flags.StringVarP(&r.namespace, "namespace", "n", "", "namespace of the ManagedResources and their Secrets in the source cluster (default: all)")
	flags.IntVar(&r.workers, "concurrent-syncs", 5, "number of ManagedResources that are reconciled at a time")
	flags.DurationVar(&r.sync, "sync-period", time.Minute, "how often a ManagedResource is reconciled without a known change")
	flags.BoolVar(&r.leaderElection, "leader-elect", true, "work only while holding the lease, so that several instances can run")
	flags.StringVar(&r.leaseNamespace, "leader-election-namespace", "", "namespace of the lease in the source cluster (default: --namespace, in a pod its own, else garden)")
	flags.StringVar(&r.leaseName, "leader-election-name", "gardener-resource-manager", "name of the lease")
	r.ports.register(cmd, 8081, 8080)
	r.log.register(cmd)
	flags.BoolVar(&r.collector, "garbage-collector", false, "delete unreferenced Secrets and ConfigMaps with the label of the garbage collector in the target")
	flags.BoolVar(&r.tokenController, "token-requestor", false, "write tokens of ServiceAccounts of the target into the Secrets of the source that ask for them")
	return cmd
}

// configuration reads the file and overrides it with the given flags.
func (r *resourceManagerCommand) configuration(cmd *cobra.Command) (*resourcemanager.Configuration, error) {
	c := &resourcemanager.Configuration{}
	if r.config != "" {
		var err error
		if c, err = resourcemanager.ReadConfiguration(r.config); err != nil {
			return nil, err
		}
	}
	c.Default()
	if r.kubeconfig != "" {
		c.SourceClientConnection.Kubeconfig = r.kubeconfig
	}
	if r.target != "" {
		c.TargetClientConnection.Kubeconfig = r.target
	}
	given := map[string]string{}
	for _, f := range r.fields(c) {
		if cmd.Flags().Changed(f.flag) {
			f.set()
			given[f.path] = f.flag
		}
	}
	var wrong []error
	for _, problem := range c.Validate() {
		path, _, _ := strings.Cut(problem.Field, "[")
		if flag := given[path]; flag != "" {
			wrong = append(wrong, fmt.Errorf("--%s (%s): %s", flag, problem.Field, problem.ErrorBody()))
			continue
		}
		wrong = append(wrong, problem)
	}
	return c, errors.Join(wrong...)
}

// flagField is a field of the configuration that a flag sets.
type flagField struct {
	flag, path string
	set        func()
}

func (r *resourceManagerCommand) fields(c *resourcemanager.Configuration) []flagField {
	k, le := &c.Controllers, &c.LeaderElection
	return []flagField{
		{"class", "controllers.resourceClass", func() { k.ResourceClass = &r.class }},
		{"cluster-id", "controllers.clusterID", func() { k.ClusterID = &r.clusterID }},
		{"namespace", "sourceClientConnection.namespaces", func() { c.SourceClientConnection.Namespaces = []string{r.namespace} }},
		{"concurrent-syncs", "controllers.managedResource.concurrentSyncs", func() { k.ManagedResource.ConcurrentSyncs = &r.workers }},
		{"sync-period", "controllers.managedResource.syncPeriod", func() { k.ManagedResource.SyncPeriod = &metav1.Duration{Duration: r.sync} }},
		{"leader-elect", "leaderElection.leaderElect", func() { le.LeaderElect = &r.leaderElection }},
		{"leader-election-namespace", "leaderElection.resourceNamespace", func() { le.ResourceNamespace = r.leaseNamespace }},
		{"leader-election-name", "leaderElection.resourceName", func() { le.ResourceName = r.leaseName }},
		{flagLogLevel, "logLevel", func() { c.LogLevel = r.log.level }},
		{"log-format", "logFormat", func() { c.LogFormat = r.log.format }},
		{flagHealthPort, "server.healthProbes.port", func() { c.Server.HealthProbes.Port = r.ports.health }},
		{"metrics-port", "server.metrics.port", func() { c.Server.Metrics.Port = r.ports.metrics }},
		{"garbage-collector", "controllers.garbageCollector.enabled", func() { k.GarbageCollector.Enabled = r.collector }},
		{"token-requestor", "controllers.tokenRequestor.enabled", func() { k.TokenRequestor.Enabled = r.tokenController }},
	}
}

func (r *resourceManagerCommand) run(cmd *cobra.Command) error {
	tuneGCForRole()
	c, err := r.configuration(cmd)
	if err != nil {
		return err
	}
	log, err := logFlags{c.LogLevel, c.LogFormat}.logger(cmd)
	if err != nil {
		return err
	}
	role := &resourcemanager.Role{Configuration: c, Log: log, Force: r.force, Version: version}
	if r.rules != "" {
		judging, err := readHealthRules(cmd, r.rules, "not started")
		if err != nil {
			return err
		}
		role.HealthRules, role.ExistenceOnly = judging.Rules, judging.ExistenceOnly
	}
	if role.Source, err = clusterAccess("source", c.SourceClientConnection.Kubeconfig); err != nil {
		return err
	}
	if path := c.TargetClientConnection.Kubeconfig; path != "" {
		if role.Target, err = clusterAccess("target", path); err != nil {
			return err
		}
	}
	end, err := telemetry.Start(cmd.Context(), "pergola-resource-manager", version)
	if err != nil {
		return err
	}
	defer end()
	if err := role.Run(cmd.Context()); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}
