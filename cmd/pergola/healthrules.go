// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// addHealthRulesFlag adds the flag for a file of health rules.
func addHealthRulesFlag(cmd *cobra.Command, target *string) {
	cmd.Flags().StringVar(target, "health-rules", "", "file with rules of health, in the format of spec.health of landscape.yaml")
}

// readHealthRules reads the file of rules and reports its errors with positions. instead completes
// the message with what was not done.
func readHealthRules(cmd *cobra.Command, file, instead string) (landscapes.HealthConfig, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return landscapes.HealthConfig{}, fmt.Errorf("reading the rules of health: %w", err)
	}
	judging, violations, err := landscapes.ParseHealthConfig(cmd.Context(), file, data)
	if err != nil {
		return judging, err
	}
	if err := reportFindings(cmd, violations, "", func(string) ([]byte, error) { return data, nil }); err != nil {
		return judging, err
	}
	if schemas.HasErrors(violations) {
		return judging, &revisions.NotValidError{Message: "--health-rules " + file + " is not valid: " + instead, Findings: violations}
	}
	return judging, nil
}
