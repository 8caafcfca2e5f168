// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/commands/why"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/landscapes"
)

// whyCommand is one run of `pergola why`.
type whyCommand struct {
	access                 accessFlags
	output, cluster, owner string
	offline                bool
}

func newWhy() *cobra.Command {
	var a whyCommand
	cmd := &cobra.Command{
		Use:   "why LANDSCAPE KIND [NAMESPACE/]NAME[.FIELD]",
		Short: "Show where a field of an object comes from and who owns it",
		Long: `Shows the template, overlay or declaration that writes a field, and the declared fields that its
value follows from, with their commits. It also shows how the object gets to its cluster, and the
owner of the field there. Git declares the object, or a component renders it. Without a field, the
answer is about the whole object.

Name items of lists as containers[app] or containers[name=app], or by their number; put keys with
dots in brackets. To find the fields that determine a value, the command renders the component
repeatedly, each time with one changed field of its declarations. The answer therefore holds for the
landscape in its present state. The command only reads clusters. Values of Secrets are never shown.

Exit code 1: the object or field does not exist; the error names a similar one. Exit code 2: the
landscape has no such owner or cluster, or a cluster does not answer. If a cluster does not answer,
the answer of Git is still complete.`,
		Example: `  pergola why landscapes/local "Deployment garden/virtual-garden-kube-apiserver.spec.replicas"
  pergola why landscapes/local Shoot garden-local/local.spec.kubernetes.version --offline
  pergola why landscapes/local Deployment shoot--local--local/kube-apiserver --owner shoot/local -o json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, args[0], strings.Join(args[1:], " ")) },
	}
	addOutputFlag(cmd, &a.output, "text", formatJSON)
	cmd.Flags().StringVar(&a.cluster, "cluster", "", "only objects on this cluster (runtime, virtual, the name of a seed, or \"shoot NAMESPACE/NAME\")")
	cmd.Flags().StringVar(&a.owner, "owner", "", "only objects of this owner, e.g. seed/local, shoot/garden-local/local, or all of a kind, e.g. seed")
	cmd.Flags().BoolVar(&a.offline, "offline", false, "ask no cluster: show only the answer of Git")
	a.access.register(cmd)
	return cmd
}

func (a *whyCommand) run(cmd *cobra.Command, dir, question string) error {
	tuneGCForCommand()
	l, err := loadValid(cmd, dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), a.access.timeout)
	defer cancel()
	opts := why.Options{Catalogue: catalogueFS(cmd), Cluster: a.cluster, Owner: a.owner, Now: time.Now(), Blame: why.NewBlamer()}
	opts.CatalogueDir, _ = cmd.Flags().GetString("catalogue")
	access, err := a.access.resolve(l)
	if err != nil {
		return err
	}
	var unavailable error
	if !a.offline {
		clusters, read, err := a.connectClusters(l, access)
		if err != nil {
			return err
		}
		opts.Clusters, opts.ReadObject = clusters, func(ctx context.Context, cluster string, ref change.Ref) (*unstructured.Unstructured, error) {
			object, err := read(ctx, cluster, ref)
			if isUnavailable(err) {
				unavailable = exitError{exitUsage}
				err = explainUnreachable(err)
			}
			return object, err
		}
	}
	answers, err := why.Explain(ctx, l, question, opts)
	if unknown := new(why.UnknownError); errors.As(err, &unknown) {
		return commands.Finding{Err: err}
	}
	if err != nil {
		return err
	}
	if a.output == formatJSON {
		err = printJSON(cmd, answers)
	} else {
		err = why.Print(cmd.OutOrStdout(), answers, func(file string) string { return filepath.Join(l.Dir, filepath.FromSlash(file)) })
	}
	return cmp.Or(err, unavailable)
}

// connectClusters connects to the reachable clusters.
func (a *whyCommand) connectClusters(l *landscapes.Landscape, access landscape.Access) ([]string, why.ObjectReader, error) {
	names, err := landscape.ClusterNames(l)
	if err != nil {
		return nil, nil, err
	}
	configs := map[string]*rest.Config{}
	for _, name := range names {
		if config, err := clusterConfig(access, l, name, configs[landscape.Runtime]); err == nil {
			configs[name] = config
		}
	}
	return why.ReachableClusters(l, names, configs)
}
