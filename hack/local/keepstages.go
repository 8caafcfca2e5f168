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
	command := &cobra.Command{
		Use:    "keep-stages",
		Short:  "Keep kwok's Stages in step with the kinds that an API server serves",
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
			keeper := stages.Keeper{Client: client, Stages: all, Interval: 500 * time.Millisecond, Log: cmd.ErrOrStderr()}
			keeper.Run(cmd.Context())
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&server, "server", "", "URL of the API server")
	flags.StringVar(&files.CA, "ca", "", "certificate authority of the API server")
	flags.StringVar(&files.Cert, "cert", "", "client certificate")
	flags.StringVar(&files.Key, "key", "", "key of the client certificate")
	return command
}
