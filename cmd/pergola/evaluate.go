// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/landscapes/evaluation"
)

// evaluateCommand is the hidden command with which the program starts itself to evaluate CUE files.
const evaluateCommand = "evaluate"

func newEvaluate() *cobra.Command {
	return &cobra.Command{
		Use:     evaluateCommand,
		Short:   "Evaluate CUE files from standard input; started by other commands",
		Example: "  pergola evaluate < MESSAGES   (see package landscapes/evaluation)",
		Hidden:  true,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return evaluation.Serve(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// addEvaluationFlags limit the workers of every command that reads CUE files.
func addEvaluationFlags(root *cobra.Command) {
	root.PersistentFlags().Duration("evaluation-timeout", 30*time.Second, "maximum time for the CUE files of one package")
	root.PersistentFlags().String("evaluation-memory", "2Gi", "maximum memory for the CUE files of one package")
}

// newEvaluationPool returns the pool of processes that evaluate CUE files. They start with the
// first file and end with Close.
func newEvaluationPool(cmd *cobra.Command) (*evaluation.Pool, error) {
	timeout, err := cmd.Flags().GetDuration("evaluation-timeout")
	if err != nil {
		return nil, err
	}
	text, err := cmd.Flags().GetString("evaluation-memory")
	if err != nil {
		return nil, err
	}
	memory, err := resource.ParseQuantity(text)
	if err != nil || memory.Value() < evaluation.MinMemory {
		return nil, fmt.Errorf("--evaluation-memory %q: want an amount of at least %d MiB, such as 2Gi", text, evaluation.MinMemory>>20)
	}
	if timeout <= 0 {
		return nil, fmt.Errorf("--evaluation-timeout %s: want more than 0, such as 30s", timeout)
	}
	return evaluation.NewPool(evaluation.Limits{Timeout: timeout, Memory: memory.Value()}, "", evaluateCommand), nil
}

// withLandscapeOptions calls read with the options for loading landscapes: keys and processes for
// CUE files.
func withLandscapeOptions(cmd *cobra.Command, read func(landscapes.Options) error) error {
	ids, err := ageIdentities()
	if err != nil {
		return err
	}
	pool, err := newEvaluationPool(cmd)
	if err != nil {
		return err
	}
	defer pool.Close()
	return read(landscapes.Options{AgeIdentities: ids, Evaluator: pool})
}
