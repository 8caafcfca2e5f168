package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/resourcemanager"
)

// resourceManager are the flags of the command.
type resourceManager struct {
	kubeconfig, target, class, clusterID, namespace string
	workers                                         int
	sync                                            time.Duration
	elect                                           bool
	leaseNamespace, leaseName                       string
	health, metrics                                 string
}

func newResourceManager() *cobra.Command {
	var r resourceManager
	cmd := &cobra.Command{
		Use:   "resource-manager",
		Short: "Keep clusters as the ManagedResources of a class say",
		Long: `Watches the ManagedResources of a class in a source cluster, applies what is in their Secrets to a target cluster by
server-side apply, deletes what left them, repairs drift at once, and tells health and progress in their conditions. It takes
the place of gardener-resource-manager for this class: stop that one first, as they hold the same lease by default.

/healthz and /readyz are on --health-bind-address, /metrics on --metrics-bind-address, both without TLS.`,
		Example: `  pergola resource-manager --class seed
  pergola resource-manager --kubeconfig runtime.yaml --target-kubeconfig virtual.yaml --namespace garden --cluster-id landscape`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&r.kubeconfig, "kubeconfig", "", "kubeconfig of the source cluster (default in a pod: its own access; else KUBECONFIG)")
	flags.StringVar(&r.target, "target-kubeconfig", "", "kubeconfig of the target cluster (default: the source cluster)")
	flags.StringVar(&r.class, "class", "", "class of the ManagedResources, as in their spec.class; * for all (default: those without a class)")
	flags.StringVar(&r.clusterID, "cluster-id", "", "identity of the source cluster, in front of the origin annotation where the target is another cluster")
	flags.StringVarP(&r.namespace, "namespace", "n", "", "namespace of the ManagedResources and their Secrets in the source cluster (default: all)")
	flags.IntVar(&r.workers, "concurrent-syncs", 5, "number of ManagedResources that are worked on at a time")
	flags.DurationVar(&r.sync, "sync-period", time.Minute, "how often a ManagedResource is looked at although nothing is known to have changed")
	flags.BoolVar(&r.elect, "leader-elect", true, "work only while holding the lease, so that several instances can run")
	flags.StringVar(&r.leaseNamespace, "leader-election-namespace", "", "namespace of the lease in the source cluster (default: --namespace, in a pod its own, else garden)")
	flags.StringVar(&r.leaseName, "leader-election-name", "gardener-resource-manager", "name of the lease")
	flags.StringVar(&r.health, "health-bind-address", ":8081", "address of /healthz and /readyz; 0 for none")
	flags.StringVar(&r.metrics, "metrics-bind-address", ":8080", "address of /metrics; 0 for none")
	return cmd
}

func (r *resourceManager) run(cmd *cobra.Command) error {
	switch {
	case r.workers < 1:
		return fmt.Errorf("--concurrent-syncs %d: want 1 or more", r.workers)
	case r.sync <= 0:
		return fmt.Errorf("--sync-period %s: want a time above zero, such as 1m", r.sync)
	}
	log := slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), nil))
	ctrllog.SetLogger(logr.FromSlogHandler(log.Handler()))
	config, err := accessOf("--kubeconfig", r.kubeconfig)
	if err != nil {
		return err
	}
	source, err := apply.NewCluster("source", config, resourcemanager.SourceOptions(r.namespace))
	if err != nil {
		return err
	}
	defer source.Close()
	target := source
	if r.target != "" || r.namespace != "" {
		// A source that is limited to a namespace cannot be the target as well, even if it is the same cluster.
		targetConfig := config
		if r.target != "" {
			if targetConfig, err = accessOf("--target-kubeconfig", r.target); err != nil {
				return err
			}
		}
		if target, err = apply.NewCluster("target", targetConfig, apply.ClusterOptions{}); err != nil {
			return err
		}
		defer target.Close()
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(log.Handler()), Metrics: metricsserver.Options{BindAddress: r.metrics}, HealthProbeBindAddress: r.health,
		LeaderElection: r.elect, LeaderElectionID: r.leaseName, LeaderElectionNamespace: r.electionNamespace(), LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("preparing the controller: %w", err)
	}
	recorder := mgr.GetEventRecorder("gardener-resource-manager")
	work, err := resourcemanager.New(resourcemanager.Options{
		Source: source, Target: target, Class: r.class, ClusterID: r.clusterID, Namespace: r.namespace, Workers: r.workers, Sync: r.sync, Log: log,
		Event: func(mr *resourcesv1alpha1.ManagedResource, reason, message string) {
			recorder.Eventf(mr, nil, corev1.EventTypeWarning, reason, "Reconcile", "%s", message)
		},
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(work); err != nil {
		return fmt.Errorf("preparing the controller: %w", err)
	}
	if err := errors.Join(
		mgr.AddHealthzCheck("ping", func(*http.Request) error { return nil }),
		mgr.AddReadyzCheck("ping", func(*http.Request) error { return nil }),
	); err != nil {
		return err
	}
	log.Info("starting", "class", r.class, "namespace", r.namespace, "target", target.Name(), "version", version)
	if err := mgr.Start(cmd.Context()); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// electionNamespace is where the lease is.
func (r *resourceManager) electionNamespace() string {
	if r.leaseNamespace != "" {
		return r.leaseNamespace
	}
	if r.namespace != "" {
		return r.namespace
	}
	if own, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return strings.TrimSpace(string(own))
	}
	return "garden"
}

// accessOf reads a kubeconfig; without one it is the access of the pod, or what KUBECONFIG names.
func accessOf(flag, path string) (*rest.Config, error) {
	if path == "" {
		if config, err := rest.InClusterConfig(); !errors.Is(err, rest.ErrNotInCluster) {
			return config, err
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, path, err)
	}
	return config, nil
}
