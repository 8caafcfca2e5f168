// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/controllers/operator"
)

func newTree() *cobra.Command {
	var object objectFlags
	var output string
	cmd := &cobra.Command{
		Use:   "tree [LANDSCAPE | OWNER]",
		Short: "Show the objects of a cluster that Pergola manages, and their owners",
		Long: `Reads the inventories of a cluster, and shows the objects that Pergola manages there, by owner,
bundle and object. Owners are landscape.NAME (for the declarations in Git), garden.NAME, seed.NAME
and shoot.NAMESPACE.NAME. Objects of a ManagedResource are below it. Nothing else of the cluster is
read. If two owners declare an object, the output says which one has it.

The inventories of a Seed and its Shoots are in the seed. All others are in the runtime cluster,
also for objects in the virtual garden, which has no inventories.`,
		Example: `  pergola tree
  pergola tree production               # as landscape.production
  pergola tree garden.production -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := object.config()
			if err != nil {
				return err
			}
			owners, err := operator.Tree(cmd.Context(), config, time.Now())
			if err != nil {
				return err
			}
			if len(owners) == 0 {
				where := noInventoriesText(args, object.otherContexts())
				if len(args) > 0 {
					return commands.Finding{Err: errors.New(where)}
				}
				fmt.Fprintln(cmd.ErrOrStderr(), "Note: "+where)
			}
			shown, err := selectOwner(owners, args)
			if err != nil {
				return err
			}
			if output == formatJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(append([]operator.TreeOwner{}, shown...))
			}
			return printTree(cmd.OutOrStdout(), shown, time.Now())
		},
	}
	addOutputFlag(cmd, &output, "text", "json")
	object.register(cmd)
	return cmd
}

// selectOwner selects one owner, if args name one. A name without a kind is that of a landscape.
func selectOwner(owners []operator.TreeOwner, args []string) ([]operator.TreeOwner, error) {
	if len(args) == 0 {
		return owners, nil
	}
	names := make([]string, 0, len(owners))
	for _, o := range owners {
		names = append(names, o.Owner)
	}
	for _, name := range []string{args[0], "landscape." + args[0]} {
		if n := slices.Index(names, name); n >= 0 {
			return owners[n : n+1], nil
		}
	}
	return nil, commands.Finding{Err: fmt.Errorf("%q has no inventory in this cluster, unlike %s: inventories of a Seed and its Shoots are in the seed, others in the runtime cluster",
		args[0], strings.Join(names, ", "))}
}

// noInventoriesText says which clusters have inventories. The virtual garden has none.
func noInventoriesText(args, contexts []string) string {
	who := "no owner"
	if len(args) > 0 {
		who = fmt.Sprintf("neither %q nor any other owner", args[0])
	}
	text := who + " has an inventory in this cluster: the seed has the inventories of a Seed and its Shoots, and the runtime cluster has all others"
	if len(contexts) > 0 {
		text += "; other contexts of the kubeconfig are " + strings.Join(contexts, ", ") + " (--context)"
	}
	return text
}

// notReconciledText returns a note if an owner is no longer reconciled.
func notReconciledText(o operator.TreeOwner, now time.Time) string {
	if o.StaleRole == nil {
		return ""
	}
	return "  (not reconciled: " + o.StaleRole.Text(now) + ")"
}

func printTree(w io.Writer, owners []operator.TreeOwner, now time.Time) error {
	total := 0
	for _, o := range owners {
		fmt.Fprintln(w, printable(o.Owner+notReconciledText(o, now)))
		for i, b := range o.Bundles {
			here, below := "├─ ", "│  "
			if i == len(o.Bundles)-1 {
				here, below = "└─ ", "   "
			}
			fmt.Fprintf(w, "%s%s\n", here, printable(b.Name+" on "+b.Cluster))
			if b.Error != "" {
				fmt.Fprintf(w, "%s✗ %s\n", below, printable(b.Error))
			}
			total += printTreeObjects(w, below, b.Objects)
		}
	}
	_, err := fmt.Fprintf(w, "%s\n", countText(total, "object"))
	return err
}

func printTreeObjects(w io.Writer, indent string, objects []operator.TreeObject) int {
	n := len(objects)
	for i, o := range objects {
		here, below := "├─ ", "│  "
		if i == len(objects)-1 {
			here, below = "└─ ", "   "
		}
		text := o.Object
		if o.Source != "" {
			text += "  (" + o.Source + ")"
		}
		if o.IsTerminating {
			text += "  being deleted"
		}
		switch {
		case o.OwnedBy != "":
			text += "  declared here, but " + o.OwnedBy + " has it"
			n--
		case len(o.OtherOwners) > 0:
			text += "  also in the inventory of " + strings.Join(o.OtherOwners, ", ")
		}
		fmt.Fprintf(w, "%s%s%s\n", indent, here, printable(text))
		n += printTreeObjects(w, indent+below, o.Objects)
	}
	return n
}
