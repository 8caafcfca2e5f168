// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pergola-dev/pergola/hack/local/extensions"
	"github.com/pergola-dev/pergola/hack/local/restclient"
	"github.com/pergola-dev/pergola/hack/local/stages"
)

// keepStagesCommand runs the part of a cluster that this program implements itself; "up" starts it.
func keepStagesCommand() *cobra.Command {
	var server string
	var files restclient.Files
	var living bool
	kwok := &stages.Kwok{}
	command := &cobra.Command{
		Use:    "keep-stages",
		Short:  "Play the Stages of the kinds that an API server serves, and provider extensions",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := restclient.New(server, files)
			if err != nil {
				return err
			}
			all, err := stages.Load()
			if err != nil {
				return err
			}
			_, others := stages.SplitBuiltin(stages.ForPodMode(all, living))
			keeper := stages.StageSyncer{
				Client: client, Stages: others, Player: kwok,
				Interval: 500 * time.Millisecond, Log: cmd.ErrOrStderr(),
			}
			group, ctx := errgroup.WithContext(cmd.Context())
			group.Go(func() error { return keeper.Run(ctx) })
			group.Go(func() error {
				return playExtensions(ctx, kwok.Kubeconfig, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
			})
			return group.Wait()
		},
	}
	flags := command.Flags()
	flags.StringVar(&server, "server", "", "URL of the API server")
	flags.StringVar(&files.CA, "ca", "", "certificate authority of the API server")
	flags.StringVar(&files.Cert, "cert", "", "client certificate")
	flags.StringVar(&files.Key, "key", "", "key of the client certificate")
	flags.StringVar(&kwok.Binary, "kwok", "", "executable of kwok")
	flags.StringVar(&kwok.Kubeconfig, "kubeconfig", "", "kubeconfig of kwok")
	flags.StringVar(&kwok.Config, "config", "", "file for the Stages")
	flags.StringVar(&kwok.Record, "record", "", "file for the process record")
	flags.BoolVar(&living, "living", false, "leave out Stages of living pods and extensions")
	flags.StringVar(&kwok.Log, "log", "", "file for the output of kwok")
	return command
}

// playExtensions reconciles extension objects until the context ends.
func playExtensions(ctx context.Context, kubeconfig string, log *slog.Logger) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // the API server is on this machine
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return extensions.New(extensions.Options{Client: client, Log: log}).Run(ctx)
}
