// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/landscapes"
)

func newOperate() *cobra.Command {
	var access accessFlags
	var output string
	var wait bool
	cmd := &cobra.Command{
		Use:   "operate LANDSCAPE OBJECT OPERATION",
		Short: "Request a one-shot operation on a Garden, Seed, Shoot, ManagedSeed, Gardenlet or Project",
		Long: `Sets the annotation gardener.cloud/operation on the object, once. Unknown operations, and operations
the object cannot run now, are rejected. Examples are a rotation out of order, an operation before
the previous one was accepted, and a rollout of a hibernated cluster.

With --wait, the command follows the operation to its end. It stops at once if no gardenlet of the
seed runs (for a Garden: no operator), or if its Landscape is suspended. It stops after 20 seconds
if no part of Pergola executes the operation and no other controller has accepted it.

OBJECT is "KIND NAME" or "KIND NAMESPACE/NAME". Operations include reconcile, retry, maintain,
rotate-… and rollout-workers=POOL. For a Garden, Seed, Shoot or Project, confirm-deletion only
confirms that it may be deleted.

The controller that executes the operation removes the annotation. In Pergola, the operator (or the
next pergola apply) executes all operations on a Garden. The operator executes force-redeploy on a
Gardenlet. The gardenlet executes reconcile on Seeds and Shoots, retry on Shoots, and renew-… on its
Seed. Any other operation stays on the object and blocks further ones, until a controller accepts it
or you remove it, for example:

  kubectl annotate shoot -n garden-local local gardener.cloud/operation-

A file operations/ID.yaml in the landscape requests the same by a commit, exactly once (see
docs/reference/operations.md).

Exit code 1: the operation is not possible, failed, has no controller that executes it, or did not
end within --timeout.`,
		Example: `  pergola operate landscapes/local "Garden local" rotate-credentials-start --wait
  pergola operate landscapes/local "Shoot garden-local/local" reconcile --wait
  pergola operate landscapes/local "Seed local" reconcile`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.ContainsFunc(args[1:], isLandscape) && !isLandscape(args[0]) {
				return &landscapes.NoLandscapeError{Dir: args[0], Reason: "it is another argument"}
			}
			if err := landscape.CheckOperation(args[1], args[2]); err != nil {
				if landscape.CheckOperation(args[2], args[1]) == nil {
					return fmt.Errorf("%w; %q is one, and comes before the operation: %s", err, args[2], cmd.UseLine())
				}
				return err
			}
			c, err := loadConverger(cmd, args[0], access)
			if err != nil {
				return err
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), access.timeout)
			defer cancel()
			last := ""
			err = c.Operate(ctx, landscape.Operation{Object: args[1], Operation: args[2], Wait: wait, OnProgress: func(text string) {
				last = text
				if wait || output == formatJSON { // otherwise it is printed as the result
					fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", args[1], printable(text))
				}
			}})
			switch {
			case errors.As(err, new(*landscape.OperationNotPossibleError)), errors.As(err, new(*landscape.NoHandlerError)), err != nil && last != "":
				return commands.Finding{Err: err}
			case err != nil:
				return err
			}
			return printOperationResult(cmd, output, args[1], args[2], finalResult(last, wait, output))
		},
	}
	addOutputFlag(cmd, &output, "text", "json")
	cmd.Flags().BoolVar(&wait, "wait", false, "follow the operation until it has ended")
	access.register(cmd)
	return cmd
}

// finalResult returns the result to print after the last message of an operation.
func finalResult(last string, wait bool, output string) string {
	if wait && last != "" && output != formatJSON { // the final message was just printed
		return "succeeded"
	}
	return last
}

func printOperationResult(cmd *cobra.Command, output, object, operation, outcome string) error {
	if output == formatJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
			Object    string `json:"object"`
			Operation string `json:"operation"`
			Outcome   string `json:"outcome,omitempty"`
		}{object, operation, outcome})
	}
	text := "requested"
	if outcome != "" {
		text = outcome
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s: %s\n", object, operation, printable(text))
	return err
}
