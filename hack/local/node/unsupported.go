// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func kubeletCommand() *cobra.Command { return unsupportedCommand("kubelet") }
func addonsCommand() *cobra.Command  { return unsupportedCommand("addons") }

// unsupportedCommand returns a command that fails on this system.
func unsupportedCommand(name string) *cobra.Command {
	return &cobra.Command{Use: name, RunE: func(*cobra.Command, []string) error {
		return errors.New("living pods need Linux")
	}}
}
