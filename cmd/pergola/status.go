package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/controllers/landscape"
)

func newStatus() *cobra.Command {
	var access accessFlags
	var output string
	var watch bool
	cmd := &cobra.Command{
		Use:   "status LANDSCAPE",
		Short: "Show the Garden, the Seeds and the Shoots with their conditions",
		Long:  "Shows the tree of a landscape from the status of its objects. Exit code 1 says that something is not ready.",
		Example: `  pergola status landscapes/local
  pergola status landscapes/local --watch`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := loadValid(cmd, args[0])
			if err != nil {
				return err
			}
			c, err := newConverger(cmd, l, access, nil, nil)
			if err != nil {
				return err
			}
			defer c.Close()
			if watch {
				return watchStatus(cmd, c)
			}
			s := c.Status(cmd.Context())
			if output == "json" {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				if err := enc.Encode(s); err != nil {
					return err
				}
			} else {
				landscape.PrintStatus(cmd.OutOrStdout(), s, colored(cmd))
			}
			if !s.Ready {
				return errFinding
			}
			return nil
		},
	}
	outputFlag(cmd, &output, "text", "json")
	cmd.Flags().BoolVar(&watch, "watch", false, "print again whenever something changes, until Ctrl-C")
	access.add(cmd)
	return cmd
}

// watchStatus prints the tree when it differs from the last one.
func watchStatus(cmd *cobra.Command, c *landscape.Converger) error {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	last := ""
	for {
		var b bytes.Buffer
		landscape.PrintStatus(&b, c.Status(cmd.Context()), colored(cmd))
		if text := b.String(); text != last && cmd.Context().Err() == nil {
			if terminal(cmd) && last != "" {
				fmt.Fprint(cmd.OutOrStdout(), "\x1b[H\x1b[2J")
			}
			last = text
			fmt.Fprint(cmd.OutOrStdout(), text)
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}
