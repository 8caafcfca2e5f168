package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/restclient"
	"github.com/pergola-dev/pergola/hack/local/stages"
)

// keepStagesCommand is the part of a cluster that this program plays itself; "up" starts it.
func keepStagesCommand() *cobra.Command {
	var server string
	var files restclient.Files
	var living bool
	kwok := &stages.Kwok{}
	command := &cobra.Command{
		Use:    "keep-stages",
		Short:  "Play the Stages of the kinds that an API server serves",
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
			_, others := stages.Split(stages.Played(all, living))
			keeper := stages.Keeper{
				Client: client, Stages: others, Player: kwok,
				Interval: 500 * time.Millisecond, Log: cmd.ErrOrStderr(),
			}
			return keeper.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&server, "server", "", "URL of the API server")
	flags.StringVar(&files.CA, "ca", "", "certificate authority of the API server")
	flags.StringVar(&files.Cert, "cert", "", "client certificate")
	flags.StringVar(&files.Key, "key", "", "key of the client certificate")
	flags.StringVar(&kwok.Binary, "kwok", "", "executable of kwok")
	flags.StringVar(&kwok.Kubeconfig, "kubeconfig", "", "kubeconfig of kwok")
	flags.StringVar(&kwok.Config, "config", "", "file that takes the Stages")
	flags.StringVar(&kwok.Record, "record", "", "file that takes the process record")
	flags.BoolVar(&living, "living", false, "leave out what runs for real where pods do")
	flags.StringVar(&kwok.Log, "log", "", "file that takes the output of kwok")
	return command
}
