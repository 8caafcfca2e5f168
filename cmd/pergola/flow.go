// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/render"
)

func newFlow() *cobra.Command {
	var output, operation string
	kinds := []string{"garden", "seed", "shoot"}
	cmd := &cobra.Command{
		Use:   "flow garden|seed|shoot",
		Short: "Print the flow of an owner: the verb and bundles of each step, and the steps before it",
		Example: `  pergola flow garden
  pergola flow garden --operation delete
  pergola flow shoot -o dot | dot -Tsvg > shoot.svg`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := strings.ToLower(args[0])
			if !slices.Contains(kinds, kind) {
				return fmt.Errorf("owner %q: want one of %s%s", args[0], strings.Join(kinds, ", "), unknown.Hint(args[0], kinds))
			}
			definition, err := render.LoadFlow(catalogueFS(cmd), operation, render.Input{Owner: render.Owner{Kind: kind}})
			if err != nil {
				return err
			}
			return printFlow(cmd, definition, output)
		},
	}
	addOutputFlag(cmd, &output, "text", "dot", "json")
	cmd.Flags().StringVar(&operation, "operation", "reconcile", "operation of the flow: reconcile or delete")
	return cmd
}

func printFlow(cmd *cobra.Command, definition render.Flow, output string) error {
	graph := owner.FlowGraph(definition)
	nodes := map[string]render.FlowNode{}
	for i, n := range definition.Nodes {
		nodes[n.ID] = n
		graph.Nodes[i].Title = strings.TrimSpace(n.ID + "\n" + n.Description())
	}
	if err := graph.Validate(); err != nil {
		return commands.Finding{Err: err}
	}
	switch output {
	case "dot":
		return graph.Dot(cmd.OutOrStdout())
	case "json":
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		return enc.Encode(definition)
	}
	order, err := graph.Order()
	if err != nil {
		return err
	}
	width := 34
	for _, id := range order {
		width = max(width, len(id))
	}
	for _, id := range order {
		var after []string
		for on, until := range nodes[id].After {
			after = append(after, on+" "+until)
		}
		text := nodes[id].Description()
		if len(after) > 0 {
			text += "  after " + strings.Join(sortStrings(after), ", ")
		}
		fmt.Fprintln(cmd.OutOrStdout(), strings.TrimSpace(fmt.Sprintf("%-*s  %s", width, id, strings.TrimSpace(text))))
	}
	return nil
}
