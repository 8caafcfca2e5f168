// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/hack/local/cluster"
	"github.com/pergola-dev/pergola/hack/local/hold"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

var clusterNamePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$`)

func upCommand(where *folderFlags) *cobra.Command {
	options := cluster.Options{}
	var parts []string
	var asJSON, fast bool
	var pods string
	var kubelets int
	command := &cobra.Command{
		Use:   "up",
		Short: "Start clusters and wait until they are ready",
		Long: `Start clusters and wait until they are ready. Running processes stay, and processes that have ended
are started again, so the command can be repeated. Executables come from the folder that
KUBEBUILDER_ASSETS names; missing executables are built, which takes minutes the first time.`,
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
			unlock, err := lockStateDir(cmd.Context(), manager, options.Timeout)
			if err != nil {
				return err
			}
			defer unlock()
			state, err := manager.Dir.Load()
			if err != nil {
				return err
			}
			living, err := hasLivingPods(pods, state)
			if err != nil {
				return err
			}
			if living && !isInNamespaces() {
				raiseInotifyLimit(inotifyInstances, os.Stderr)
			}
			// A Garden needs: a living API server, or a cluster instead.
			usual := !cmd.Flags().Changed("clusters")
			switch {
			case living && usual:
				options.Kubelets, options.Clusters = kubelets, []string{"runtime", "local"}
			case living:
				options.Kubelets = kubelets
			case usual:
				options.VirtualGarden = cluster.VirtualGarden{Runtime: "runtime", Played: "virtual"}
			}
			if err := checkImages(options.Images); err != nil {
				return err
			}
			if living && !isInNamespaces() {
				err = startLivingClusters(cmd.Context(), manager, options)
			} else {
				err = manager.Up(cmd.Context(), options)
			}
			if err != nil || isInNamespaces() { // the process outside reports the result
				return err
			}
			if asJSON {
				status, err := statusOf(cmd.Context(), manager)
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
	flags.StringSliceVar(&options.Clusters, "clusters", []string{"runtime", "virtual", "local"}, "names of the clusters; others in the folder stay unchanged. Leave out virtual if pods run: a Garden then has its own API server")
	flags.StringSliceVar(&options.Nodeless, "nodeless", []string{"virtual"}, "clusters that get only an API server and a controller manager")
	flags.StringSliceVar(&parts, "parts", nil, "parts of every cluster instead: apiserver, controller-manager, scheduler, kwok")
	flags.BoolVar(&fast, "fast", false, "only API servers (and etcd), like --parts apiserver")
	flags.IntVar(&options.Nodes, "nodes", 3, "fake nodes of a cluster with kwok, one per zone")
	flags.StringVar(&pods, "pods", "play", "mode of pods whose images are executables of this machine: run, play, or auto, which runs them if the machine allows it (Linux, user namespaces)")
	flags.StringToStringVar(&options.Images, "image", nil, "more images that are executables of this machine: REPOSITORY=FILE, a static executable; remembered until clean")
	flags.IntVar(&kubelets, "kubelets", 1, "nodes of a cluster that run such pods, one per zone")
	flags.DurationVar(&options.Timeout, "timeout", 3*time.Minute, "how long the clusters may take to be ready, without building")
	flags.BoolVar(&asJSON, "json", false, "print the status, with the kubeconfig of every cluster, as JSON")
	return command
}

func checkNames(names []string) error {
	seen := map[string]bool{}
	for _, name := range names {
		if !clusterNamePattern.MatchString(name) || name == "shared" {
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

// hasLivingPods reports whether pods are living, as the flag says. Clusters cannot change between
// both kinds: their pods would not move.
func hasLivingPods(wanted string, state *statedir.State) (bool, error) {
	made := len(state.Clusters) > 0
	switch wanted {
	case "play":
		if made && state.Living {
			return false, errors.New("the clusters of this folder have living pods: use --pods run, or remove them first (make local-clean)")
		}
		return false, nil
	case "run", "auto":
		if isInNamespaces() || wanted == "auto" && made && state.Living {
			return true, nil
		}
		possible := hold.CheckSupport()
		switch {
		case wanted == "run" && made && !state.Living:
			return false, errors.New("the clusters of this folder have played pods: use --pods play, or remove them first (make local-clean)")
		case wanted == "run":
			return possible == nil, possible
		case possible != nil:
			fmt.Fprintf(os.Stderr, "all pods are played, and none runs: %s\n", possible)
			return false, nil
		case made:
			fmt.Fprintln(os.Stderr, "all pods are played, and none runs: the clusters were created so (local clean removes them)")
			return false, nil
		}
		return true, nil
	}
	return false, fmt.Errorf("--pods %q: use run, play or auto", wanted)
}

// checkImages makes the paths absolute and checks that the files exist.
func checkImages(all map[string]string) error {
	for repository, file := range all {
		path, err := filepath.Abs(file)
		if err != nil {
			return fmt.Errorf("--image %s: %w", repository, err)
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return fmt.Errorf("--image %s: %s is not an executable file", repository, path)
		}
		all[repository] = path
	}
	return nil
}
