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
		Short: "Ask for a one-shot operation on a Garden, Seed, Shoot, ManagedSeed, Gardenlet or Project",
		Long: `Sets the operation's annotation (gardener.cloud/operation) on the object, once. An operation that there is not, or that
the object cannot do in its present state, is refused: a rotation out of order, another operation that was not taken up yet, a
rollout of a cluster that sleeps. With --wait the operation is followed to its end; the wait ends at once where no gardenlet of the seed
runs that would do it, or for a Garden no operator, or its Landscape is suspended, and after 20 seconds where no part of Pergola does the
operation and no other controller has taken it up.

OBJECT is "KIND NAME" or "KIND NAMESPACE/NAME". Among the operations are reconcile, retry, maintain, rotate-…, rollout-workers=POOL
and, for a Garden, Seed, Shoot or Project, confirm-deletion, which only confirms that it may be deleted.

This sets the annotation, and whoever does the operation takes it away again. Of Pergola, the operator (or the next pergola apply) does
all operations on a Garden, and the operator force-redeploy on a Gardenlet; the gardenlet does reconcile on Seeds and Shoots, retry on
Shoots, and renew-… on its Seed. Any other operation stays on the object, and keeps further ones from being asked for, until a controller
that does it takes it up, or until it is taken back, for example:

  kubectl annotate shoot -n garden-local local gardener.cloud/operation-

A file operations/ID.yaml in the landscape does the same by a commit, exactly once (see docs/reference/operations.md).

Exit code 1 says that the operation is not possible, that it failed, that nobody is there who does it, or that its end was not
seen within --timeout.`,
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
					return fmt.Errorf("%w; %q is one, and stands before the operation: %s", err, args[2], cmd.UseLine())
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
	access.add(cmd)
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
	text := "asked for"
	if outcome != "" {
		text = outcome
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s: %s\n", object, operation, printable(text))
	return err
}
