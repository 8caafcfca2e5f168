// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{Use: "snapshot", Short: "Snapshots of the etcds of local clusters", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(saveCommand(), restoreCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(2)
	}
}

// etcdTarget is the location of an existing or future Etcd.
type etcdTarget struct {
	kube            kubernetes.Interface
	dynamic         dynamic.Interface
	namespace, name string
}

// newEtcdTarget parses NAMESPACE/ETCD and connects to the cluster of a kubeconfig context.
func newEtcdTarget(kubeContext, etcd string) (*etcdTarget, error) {
	namespace, name, found := strings.Cut(etcd, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q is not NAMESPACE/ETCD", etcd)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: kubeContext}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	s := &etcdTarget{namespace: namespace, name: name}
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("context %s: %w", kubeContext, err)
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("context %s: %w", kubeContext, err)
	}
	return s, nil
}
