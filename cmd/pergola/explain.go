// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/rulebook"
)

func newExplain() *cobra.Command {
	var output string
	var rules bool
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD…] | RULE",
		Short: "Show the type, allowed values, documentation and rules of a field",
		Long: `Prints type, default, allowed values, form and documentation of a kind or one of its fields, and the
rules about it. With the id of a rule, as in findings, it prints the reason for the rule and the
remedy.

If several groups have a kind, write extensions.Worker or Worker.extensions.gardener.cloud, with a
version ControllerDeployment.v1beta1.core.gardener.cloud.`,
		Example: `  pergola explain Shoot.spec.provider.workers
  pergola explain Garden.spec.virtualCluster.dns
  pergola explain shoot/worker-system-components
  pergola explain --rules Seed`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeKinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			question := strings.Join(args, "")
			switch {
			case rules:
				return explainRules(cmd, question, output)
			case question == "":
				return errors.New("give a kind, a field such as Shoot.spec.kubernetes, or the id of a rule; --rules lists the rules")
			case question == schemas.RuleStructure, strings.Contains(question, "/") && !strings.ContainsAny(question, "["):
				return explainRule(cmd, question, output)
			}
			e, err := rulebook.Explain(question)
			if err != nil {
				return err
			}
			if output == formatJSON {
				return printJSON(cmd, e)
			}
			return e.WriteText(cmd.OutOrStdout())
		},
	}
	addOutputFlag(cmd, &output, "text", formatJSON)
	cmd.Flags().BoolVar(&rules, "rules", false, "list all rules, or the rules of the given kind")
	return cmd
}

func explainRule(cmd *cobra.Command, id, output string) error {
	found, err := rulebook.FindRule(id)
	if err != nil {
		return err
	}
	if output == formatJSON {
		return printJSON(cmd, found)
	}
	return rulebook.WriteRule(cmd.OutOrStdout(), found)
}

func explainRules(cmd *cobra.Command, kind, output string) error {
	var list []schemas.Rule
	var err error
	if kind == "" {
		list, err = rulebook.Rules()
	} else {
		list, err = rulebook.RulesOfKindName(kind)
	}
	if err != nil {
		return err
	}
	if output == formatJSON {
		return printJSON(cmd, list)
	}
	return rulebook.WriteRules(cmd.OutOrStdout(), list)
}

func printJSON(cmd *cobra.Command, value any) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// completeKinds completes kinds, and their fields after the dot.
func completeKinds(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	offers, err := rulebook.CompleteFieldReference(word)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
