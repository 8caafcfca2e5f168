// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/pergola-dev/pergola/controllers/gardenlet"
	"github.com/pergola-dev/pergola/internal/serving"
	"github.com/pergola-dev/pergola/internal/telemetry"
)

// gardenletFlags are the flags of `pergola gardenlet`.
type gardenletFlags struct {
	seed, garden, gardenSecret, kubeconfig string
	ports                                  portFlags
	address                                string
	policies                               []string
	log                                    logFlags
}

func newGardenlet() *cobra.Command {
	var f gardenletFlags
	cmd := &cobra.Command{
		Use:   "gardenlet --seed NAME (--garden-kubeconfig-secret NAMESPACE/NAME | --garden-kubeconfig FILE)",
		Short: "Reconcile one seed and its Shoots from the virtual garden",
		Long: `Runs in a seed and reconciles it. It watches its Seed, the Shoots that are bound to it and the
objects they refer to in the virtual garden. Settings and overlays come from namespace seed-NAME,
where the operator publishes them. The seed needs no Git and no access from outside. gardenlet
repairs drift and reports health continuously. While the virtual garden is unreachable, it maintains
the seed with the last known input.

The access to the virtual garden is in a Secret of the seed, key kubeconfig. If the access is a
token of a ServiceAccount, gardenlet renews it before it expires, and when a rotation requests it.
gardenlet does not renew a file of --garden-kubeconfig.

gardenlet takes the lease garden/gardenlet-leader-election on the seed, as upstream's gardenlet
does. A second instance waits for it.

/healthz and /readyz are on the health port, and /metrics is on the metrics port, both without TLS.
/readyz names the missing parts. OTEL_EXPORTER_OTLP_ENDPOINT sets the address that gets traces.`,
		Example: `  pergola gardenlet --seed local --garden-kubeconfig-secret garden/gardenlet-garden
  pergola gardenlet --seed local --garden-kubeconfig garden.yaml --kubeconfig seed.yaml --log-format text`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.seed, "seed", "", "name of the Seed (required)")
	flags.StringVar(&f.gardenSecret, "garden-kubeconfig-secret", "", "Secret of the seed with the kubeconfig of the virtual garden, as NAMESPACE/NAME")
	flags.StringVar(&f.garden, "garden-kubeconfig", "", "kubeconfig of the virtual garden, in a file")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the seed (default in a pod: its own access; else KUBECONFIG)")
	f.ports.register(cmd, 2728, 2729)
	addBindAddress(cmd, &f.address)
	addPolicyNamespaces(cmd, &f.policies)
	f.log.register(cmd)
	_ = cmd.MarkFlagRequired("seed")
	cmd.MarkFlagsOneRequired("garden-kubeconfig-secret", "garden-kubeconfig")
	cmd.MarkFlagsMutuallyExclusive("garden-kubeconfig-secret", "garden-kubeconfig")
	return cmd
}

func (f *gardenletFlags) run(cmd *cobra.Command) error {
	tuneGCForRole()
	if wrong := utilvalidation.IsDNS1123Label(f.seed); len(wrong) > 0 {
		return fmt.Errorf("--seed: %q is not a valid name of a Seed: %s", f.seed, strings.Join(wrong, "; "))
	}
	log, err := f.log.logger(cmd)
	if err != nil {
		return err
	}
	o := gardenlet.Options{Seed: f.seed, Holder: leaseHolder("gardenlet"), Version: version, Log: log, Catalogue: catalogueFS(cmd), OutsideCluster: !isInCluster(f.kubeconfig)}
	if o.PolicyNamespaces, err = policyNamespaces(f.policies); err != nil {
		return err
	}
	if err := f.setAccess(&o); err != nil {
		return err
	}
	g, err := gardenlet.New(o)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(g, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	servers, err := serving.Listen(serving.Options{Address: f.address, HealthPort: f.ports.health, MetricsPort: f.ports.metrics, Ready: g.Ready(), Metrics: registry})
	if err != nil {
		return err
	}
	end, err := telemetry.Start(cmd.Context(), "pergola-gardenlet", version)
	if err != nil {
		return err
	}
	defer end()
	group, ctx := errgroup.WithContext(cmd.Context())
	group.Go(func() error { return servers.Serve(ctx) })
	group.Go(func() error { return g.Run(ctx) })
	if err := group.Wait(); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// setAccess sets the access to the garden and the seed cluster.
func (f *gardenletFlags) setAccess(o *gardenlet.Options) (err error) {
	if f.gardenSecret != "" {
		namespace, name, ok := strings.Cut(f.gardenSecret, "/")
		if !ok || len(utilvalidation.IsDNS1123Label(namespace)) > 0 || len(utilvalidation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("--garden-kubeconfig-secret: %q is not NAMESPACE/NAME of a Secret", f.gardenSecret)
		}
		o.GardenSecret = types.NamespacedName{Namespace: namespace, Name: name}
	} else {
		if o.Garden, err = clusterAccess("garden", f.garden); err != nil {
			return err
		}
		o.Garden.UserAgent = "pergola-gardenlet"
	}
	if o.Local, err = clusterAccess("seed", f.kubeconfig); err != nil {
		return err
	}
	o.Local.UserAgent = "pergola-gardenlet"
	return nil
}
