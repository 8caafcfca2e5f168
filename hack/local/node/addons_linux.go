// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/hack/local/living/admission"
	"github.com/pergola-dev/pergola/hack/local/living/domains"
	"github.com/pergola-dev/pergola/hack/local/living/etcds"
	"github.com/pergola-dev/pergola/hack/local/living/images"
	"github.com/pergola-dev/pergola/hack/local/living/names"
	"github.com/pergola-dev/pergola/hack/local/living/services"
	"github.com/pergola-dev/pergola/hack/local/living/volumes"
	"github.com/pergola-dev/pergola/hack/local/podnet"
)

// addonsOptions has the flags of the command.
type addonsOptions struct {
	kubeconfig, services, loadBalancers, dns, apiServer, volumes, networks, taint string
	otherKubeconfigs                                                              []string
	oneNode                                                                       bool
	executables                                                                   map[string]string
}

func addonsCommand() *cobra.Command {
	a := &addonsOptions{}
	command := &cobra.Command{
		Use:   "addons",
		Short: "Serve the Services, names, volumes and Etcds of a cluster, and send pods to the nodes that can run them",
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
	flags.StringVar(&a.networks, "networks", "", "folder for the records of networks")
	flags.StringVar(&a.taint, "taint", "", "key of the taint and the label of nodes that run pods")
	flags.BoolVar(&a.oneNode, "one-node", false, "only one node runs pods")
	flags.StringArrayVar(&a.otherKubeconfigs, "names-of", nil, "kubeconfigs of other clusters whose DNSRecords are served, too")
	flags.StringToStringVar(&a.executables, "executables", nil, "files of the executables that images stand for, by name")
	return command
}

func (a *addonsOptions) run(cmd *cobra.Command) error {
	kube, client, err := newClients(a.kubeconfig)
	if err != nil {
		return err
	}
	table, err := images.NewTable(cmd.Context(), a.executables)
	if err != nil {
		return err
	}
	balancers, err := a.addLocalRanges()
	if err != nil {
		return err
	}
	server, err := netip.ParseAddr(a.dns)
	if err != nil {
		return fmt.Errorf("--dns: %w", err)
	}
	api, err := netip.ParseAddrPort(a.apiServer)
	if err != nil {
		return fmt.Errorf("--api-server: %w", err)
	}
	log := newLog()
	group, ctx := errgroup.WithContext(cmd.Context())
	servers, declared, err := a.watchNames(ctx, group, kube, client, log)
	if err != nil {
		return err
	}
	dns, err := names.New(names.Options{Kube: kube, Dynamic: client, Address: netip.AddrPortFrom(server, 53), PrioritySources: servers, FallbackSources: declared, Log: log})
	if err != nil {
		return err
	}
	forwarder, err := services.New(services.Options{Kube: kube, Dynamic: client, KubernetesEndpoint: api, LoadBalancers: balancers, Log: log})
	if err != nil {
		return err
	}
	for _, run := range []func(context.Context) error{
		dns.Run, forwarder.Run, volumes.New(volumes.Options{Kube: kube, Folder: a.volumes, Log: log}).Run,
		etcds.New(etcds.Options{Kube: kube, Dynamic: client, Log: log, NoSync: true}).Run,
	} {
		group.Go(func() error { return run(ctx) })
	}
	group.Go(func() error { return admission.Ensure(ctx, kube, table.Pattern(), a.taint, a.oneNode) })
	return group.Wait()
}

// newClients returns clients of a cluster.
func newClients(kubeconfig string) (kubernetes.Interface, dynamic.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 200, 400
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("creating a client: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("creating a client: %w", err)
	}
	return kube, client, nil
}

// addLocalRanges makes the ranges of Services and load balancers local addresses of this network
// namespace, and returns the latter range.
func (a *addonsOptions) addLocalRanges() (balancers netip.Prefix, err error) {
	network, err := podnet.Open(a.networks)
	if err != nil {
		return netip.Prefix{}, err
	}
	for _, text := range []string{a.services, a.loadBalancers} {
		if balancers, err = netip.ParsePrefix(text); err != nil {
			return netip.Prefix{}, fmt.Errorf("range of addresses: %w", err)
		}
		if err := network.AddLocalRange(balancers); err != nil {
			return netip.Prefix{}, err
		}
	}
	return balancers, nil
}

// watchNames starts watching additional names: first names of API servers, then names that other
// clusters declare.
func (a *addonsOptions) watchNames(ctx context.Context, group *errgroup.Group, kube kubernetes.Interface, client dynamic.Interface, log *slog.Logger) (servers, declared []names.Source, err error) {
	type source interface {
		names.Source
		Run(context.Context)
	}
	watch := func(source source) source {
		group.Go(func() error { source.Run(ctx); return nil })
		return source
	}
	servers = append(servers, watch(domains.New(kube, client, clock.RealClock{}, log)))
	for _, kubeconfig := range a.otherKubeconfigs {
		otherKube, other, err := newClients(kubeconfig)
		if err != nil {
			return nil, nil, err
		}
		declared = append(declared, watch(names.NewRecords(other, clock.RealClock{}, log)))
		servers = append(servers, watch(domains.New(otherKube, other, clock.RealClock{}, log)))
	}
	return servers, declared, nil
}
