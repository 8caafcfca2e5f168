// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/hack/local/living/cri"
	"github.com/pergola-dev/pergola/hack/local/living/images"
	"github.com/pergola-dev/pergola/hack/local/living/kubelet"
	"github.com/pergola-dev/pergola/hack/local/podnet"
)

// podStopGrace is the grace period of pods' processes when the node ends.
const podStopGrace = 10 * time.Second

func kubeletCommand() *cobra.Command {
	var (
		o                            kubelet.Options
		kubeconfig, pods, taint, dir string
		executables                  map[string]string
		memory                       int64
	)
	command := &cobra.Command{
		Use:   "kubelet",
		Short: "Act as a node, and run its pods as processes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx := cmd.Context()
			if o.Client, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
				return fmt.Errorf("reading --kubeconfig: %w", err)
			}
			prefix, err := netip.ParsePrefix(pods)
			if err != nil {
				return fmt.Errorf("--pods: %w", err)
			}
			address, err := netip.ParseAddr(o.Address)
			if err != nil {
				return fmt.Errorf("--address: %w", err)
			}
			table, err := images.NewTable(ctx, executables)
			if err != nil {
				return err
			}
			o.Log, o.Machine.Memory = newLog(), uint64(memory)<<30
			o.Folder, o.LogFolder = filepath.Join(dir, "kubelet"), filepath.Join(dir, "logs")
			if taint != "" {
				o.Taints = []corev1.Taint{{Key: taint, Effect: corev1.TaintEffectNoSchedule}}
			}
			network, err := podnet.Open(filepath.Join(dir, "networks"))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, network.Close()) }()
			if err := addLoopbackAddress(address); err != nil {
				return err
			}
			runtime, err := cri.New(cri.Options{
				Images: table, Executables: executables, Folder: filepath.Join(dir, "containers"), Pods: prefix, Network: podNetworks{network}, HostAddress: o.Address,
				Clock: clock.RealClock{}, Log: o.Log,
			})
			if err != nil {
				return err
			}
			o.Runtime, o.Images = runtime, cri.Images{Runtime: runtime}
			err = kubelet.Run(ctx, o)
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*podStopGrace)
			defer cancel()
			return errors.Join(err, runtime.CloseWithGrace(end, podStopGrace))
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Name, "name", "", "name of the Node")
	flags.StringToStringVar(&o.Labels, "labels", nil, "labels of the Node")
	flags.StringVar(&taint, "taint", "", "key of a taint of the Node, for pods that do not tolerate it")
	flags.StringVar(&o.Address, "address", "", "address of the Node")
	flags.Int32Var(&o.Port, "port", 10250, "port of the kubelet on it")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig with the rights of the Node")
	flags.StringVar(&o.Certificate, "cert", "", "certificate to serve with")
	flags.StringVar(&o.Key, "key", "", "its key")
	flags.StringVar(&o.ClientCA, "client-ca", "", "authority of clients")
	flags.StringVar(&o.DNS, "dns", "", "address of the cluster's DNS server")
	flags.StringVar(&o.Domain, "domain", "cluster.local", "domain of the cluster's names")
	flags.StringVar(&pods, "pods", "", "range of the addresses of its pods")
	flags.StringVar(&dir, "dir", "", "folder of the node")
	flags.StringToStringVar(&executables, "executables", nil, "files of the executables that images stand for, by name")
	flags.IntVar(&o.Machine.CPUs, "cpus", 64, "processors that the Node reports")
	flags.Int64Var(&memory, "memory", 256, "memory that the Node reports, in GiB")
	return command
}

// addLoopbackAddress adds an address to the loopback device: the kubelet requires its node's
// address on a device of the machine.
func addLoopbackAddress(address netip.Addr) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback device: %w", err)
	}
	ip := &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(address.BitLen(), address.BitLen())}
	if err := netlink.AddrReplace(loopback, &netlink.Addr{IPNet: ip}); err != nil {
		return fmt.Errorf("giving the node its address: %w", err)
	}
	return nil
}

// podNetworks implements the runtime's Network with package podnet.
type podNetworks struct{ *podnet.Network }

func (p podNetworks) Add(name string, address netip.Addr) (cri.Namespace, error) {
	pod, err := p.Network.Add(name, address, podnet.Options{})
	if err != nil {
		return nil, err
	}
	return podNetwork{pod}, nil
}

// podNetwork is the network of one pod.
type podNetwork struct{ *podnet.Pod }

func (p podNetwork) Path() string { return p.NetNS }
