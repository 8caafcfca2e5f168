package main

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pergola-dev/pergola/hack/local/living/admission"
	"github.com/pergola-dev/pergola/hack/local/living/etcds"
	"github.com/pergola-dev/pergola/hack/local/living/images"
	"github.com/pergola-dev/pergola/hack/local/podnet"
)

// addons is what the command was told.
type addons struct {
	kubeconfig, services, loadBalancers, dns, apiServer, volumes, taint string
	namesOf                                                             []string
	executables                                                         map[string]string
}

func addonsCommand() *cobra.Command {
	a := &addons{}
	command := &cobra.Command{
		Use:   "addons",
		Short: "Do what Services, names, volumes and Etcds of a cluster need, and send pods to the nodes that can run them",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	flags := command.Flags()
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster")
	flags.StringVar(&a.services, "services", "", "range of the addresses of Services")
	flags.StringVar(&a.loadBalancers, "load-balancers", "", "range of the addresses of load balancers")
	flags.StringVar(&a.dns, "dns", "", "address of the DNS server")
	flags.StringVar(&a.apiServer, "api-server", "", "host and port of the API server, for the Service kubernetes")
	flags.StringVar(&a.volumes, "volumes", "", "folder of the volumes")
	flags.StringVar(&a.taint, "taint", "", "key of the taint and the label of nodes that run pods")
	flags.StringArrayVar(&a.namesOf, "names-of", nil, "kubeconfigs of other clusters whose DNSRecords are served, too")
	flags.StringToStringVar(&a.executables, "executables", nil, "files of the executables that images stand for, by name")
	return command
}

func (a *addons) run(cmd *cobra.Command) error {
	config, err := clientcmd.BuildConfigFromFlags("", a.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading --kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	table, err := images.Of(cmd.Context(), a.executables)
	if err != nil {
		return err
	}
	network, err := podnet.Open(filepath.Join(a.volumes, ".networks"))
	if err != nil {
		return err
	}
	for _, text := range []string{a.services, a.loadBalancers} {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("range of addresses: %w", err)
		}
		if err := network.Local(prefix); err != nil {
			return err
		}
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	log := newLog()
	group, ctx := errgroup.WithContext(cmd.Context())
	group.Go(func() error {
		return etcds.New(etcds.Options{Kube: client, Dynamic: dynamicClient, Log: log, NoSync: true}).Run(ctx)
	})
	if err := admission.Ensure(ctx, client, table.Pattern(), a.taint); err != nil {
		return err
	}
	return group.Wait()
}
