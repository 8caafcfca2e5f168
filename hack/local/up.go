package main

import (
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/cluster"
)

var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$`)

func upCommand(where *places) *cobra.Command {
	options := cluster.Options{}
	var parts []string
	var asJSON, fast bool
	command := &cobra.Command{
		Use:   "up",
		Short: "Bring clusters up and wait until they are ready",
		Long: `Bring clusters up and wait until they are ready. What runs already is left alone and what has died is
started again, so it does no harm to run it twice. Executables are taken from the folder that
KUBEBUILDER_ASSETS names; those that are not there are built, which takes minutes the first time.`,
		Example: `  local up
  local up --dir "$TMPDIR/test" --clusters one,two --fast --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fast {
				parts = []string{cluster.PartAPIServer}
			}
			if parts != nil {
				var err error
				if options.Parts, err = cluster.ParseParts(parts); err != nil {
					return err
				}
			}
			if err := checkNames(options.Clusters); err != nil {
				return err
			}
			manager, err := where.manager(os.Stderr)
			if err != nil {
				return err
			}
			unlock, err := lock(cmd.Context(), manager, options.Timeout)
			if err != nil {
				return err
			}
			defer unlock()
			if err := manager.Up(cmd.Context(), options); err != nil {
				return err
			}
			if asJSON {
				status, err := manager.Status(cmd.Context())
				if err != nil {
					return err
				}
				return printJSON(cmd.OutOrStdout(), status)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", manager.Dir.MergedKubeconfig())
			return nil
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&options.Clusters, "clusters", []string{"runtime", "virtual", "local"}, "names of the clusters; others in the folder are left as they are")
	flags.StringSliceVar(&options.Nodeless, "nodeless", []string{"virtual"}, "clusters that get an API server and a controller manager only")
	flags.StringSliceVar(&parts, "parts", nil, "parts of every cluster instead: apiserver, controller-manager, scheduler, kwok")
	flags.BoolVar(&fast, "fast", false, "only API servers (and etcd): the same as --parts apiserver")
	flags.IntVar(&options.Nodes, "nodes", 3, "fake nodes of a cluster with kwok, one per zone")
	flags.DurationVar(&options.Timeout, "timeout", 3*time.Minute, "how long the clusters may take to be ready, without building")
	flags.BoolVar(&asJSON, "json", false, "print the status, with the kubeconfig of every cluster, as JSON")
	return command
}

func checkNames(names []string) error {
	seen := map[string]bool{}
	for _, name := range names {
		if !clusterName.MatchString(name) || name == "shared" {
			return fmt.Errorf("cluster name %q: use lower-case letters, digits and dashes, and not \"shared\"", name)
		}
		if seen[name] {
			return fmt.Errorf("cluster name %q is given twice", name)
		}
		seen[name] = true
	}
	if len(names) == 0 || len(names) > 100 {
		return fmt.Errorf("%d clusters: give between 1 and 100 names", len(names))
	}
	return nil
}
