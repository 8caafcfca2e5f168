// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/controllers/operator"
	"github.com/pergola-dev/pergola/internal/telemetry"
)

// operatorFlags are the flags of `pergola operator`.
type operatorFlags struct {
	kubeconfig, namespace string
	ports                 portFlags
	address               string
	receivers             int
	proxies               []string
	files                 bool
	policies              []string
	log                   logFlags
}

func newOperator() *cobra.Command {
	var o operatorFlags
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Sync landscapes from Git to the runtime cluster and the virtual garden",
		Long: `Watches the Landscape objects of a runtime cluster, and applies the declarations that each one names
in Git or in an OCI artifact. It asks the source for new revisions, verifies, validates and applies
them, and repairs drift. It reports the result in status, events, metrics and at the forge. It
reports an invalid revision, and maintains the current one. Seeds are not contacted: the operator
publishes their input in the virtual garden, where their gardenlets read it.

It replaces gardener-operator and holds the same lease (in namespace garden): stop gardener-operator
first. Several instances can run; one is active.

/healthz and /readyz are on the health port, /metrics is on the metrics port, and
/hooks/NAMESPACE/LANDSCAPE/RECEIVER is on the receiver port, all without TLS.
OTEL_EXPORTER_OTLP_ENDPOINT sets the address that gets traces.`,
		Example: `  pergola operator --cache-dir /cache
  pergola operator --kubeconfig runtime.yaml --namespace garden --log-format text`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the runtime cluster (default in a pod: its own access; else KUBECONFIG)")
	flags.StringVarP(&o.namespace, "namespace", "n", "garden", "namespace of the Landscapes; empty for all")
	o.ports.register(cmd, 8081, 8080)
	addBindAddress(cmd, &o.address)
	flags.IntVar(&o.receivers, "receiver-port", 9292, "port of /hooks; -1 for none")
	flags.StringArrayVar(&o.proxies, "receiver-proxy", nil, "address range of load balancers in front of /hooks, such as 10.0.0.0/8, whose X-Forwarded-For names the sender of a request; may be given several times")
	flags.BoolVar(&o.files, "allow-file-sources", false, "allow file:// as source: every author of a Landscape can then read all repositories on this machine")
	addPolicyNamespaces(cmd, &o.policies)
	o.log.register(cmd)
	return cmd
}

func (o *operatorFlags) run(cmd *cobra.Command) error {
	tuneGCForRole()
	log, err := o.log.logger(cmd)
	if err != nil {
		return err
	}
	proxies, err := o.receiverProxies()
	if err != nil {
		return err
	}
	further, err := policyNamespaces(o.policies)
	if err != nil {
		return err
	}
	config, err := clusterAccess("runtime", o.kubeconfig)
	if err != nil {
		return err
	}
	pool, err := newEvaluationPool(cmd)
	if err != nil {
		return err
	}
	defer pool.Close()
	dir, err := operatorCache(cmd)
	if err != nil {
		return err
	}
	end, err := telemetry.Start(cmd.Context(), "pergola-operator", version)
	if err != nil {
		return err
	}
	defer end()
	role := &operator.Role{
		Config: config, OutsideCluster: !isInCluster(o.kubeconfig), Namespace: o.namespace, Catalogue: catalogueFS(cmd), Evaluator: pool, CacheDir: dir, FileSources: o.files, Version: version,
		Serving: operator.Serving{
			Address: o.address, HealthPort: o.ports.health, MetricsPort: o.ports.metrics, ReceiverPort: o.receivers, ReceiverProxies: proxies,
			OnListen: func(health, metrics, receivers string) {
				log.Info("listening", "health", health, "metrics", metrics, "receivers", receivers)
			},
		},
		PolicyNamespaces: further, Holder: leaseHolder("operator"), Clock: clock.RealClock{}, Log: log,
	}
	if err := role.Run(cmd.Context()); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

func (o *operatorFlags) receiverProxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range o.proxies {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--receiver-proxy %q: want a range of addresses, such as 10.0.0.0/8 or 192.0.2.1/32", text)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// operatorCache returns the folder for sources and validation results between runs.
func operatorCache(cmd *cobra.Command) (string, error) {
	if off, err := cmd.Flags().GetBool(flagNoCache); err != nil || off {
		return "", err
	}
	dir, err := cacheDir(cmd)
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w: name one with --cache-dir", err)
	}
	dir = filepath.Join(dir, "operator")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the cache folder: %w: name another one with --cache-dir", err)
	}
	return dir, nil
}
