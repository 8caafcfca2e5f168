package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/render"
)

func newFlow() *cobra.Command {
	var output, operation string
	kinds := []string{"garden", "seed", "shoot"}
	cmd := &cobra.Command{
		Use:   "flow garden|seed|shoot",
		Short: "Print the flow of an owner: what is applied after what",
		Example: `  pergola flow garden
  pergola flow shoot -o dot | dot -Tsvg > shoot.svg`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := strings.ToLower(args[0])
			if !slices.Contains(kinds, kind) {
				return fmt.Errorf("owner %q: want one of %s%s", args[0], strings.Join(kinds, ", "), unknown.Hint(args[0], kinds))
			}
			definition, err := render.LoadFlow(catalogue(cmd), operation, render.Input{Owner: render.Owner{Kind: kind}})
			if err != nil {
				return err
			}
			return printFlow(cmd, definition, output)
		},
	}
	outputFlag(cmd, &output, "text", "dot", "json")
	cmd.Flags().StringVar(&operation, "operation", "reconcile", "operation: reconcile or delete")
	return cmd
}

// notRun stands for the work of a step: the graph is only looked at.
func notRun(context.Context, func(flow.State, string)) error { return nil }

func printFlow(cmd *cobra.Command, definition render.Flow, output string) error {
	graph := flow.Graph{}
	for _, n := range definition.Nodes {
		node := flow.Node{ID: n.ID, Title: n.ID, Run: notRun}
		for _, id := range slices.Sorted(maps.Keys(n.After)) {
			until := n.After[id]
			node.Needs = append(node.Needs, flow.Edge{ID: id, Until: flow.State(strings.ToUpper(until[:1]) + until[1:])})
		}
		graph.Nodes = append(graph.Nodes, node)
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
	nodes := map[string]render.FlowNode{}
	for _, n := range definition.Nodes {
		nodes[n.ID] = n
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
		text := ""
		if len(after) > 0 {
			text = "  after " + strings.Join(sorted(after), ", ")
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%-*s%s\n", width, id, text)
	}
	return nil
}
