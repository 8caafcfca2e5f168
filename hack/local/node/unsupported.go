//go:build !linux

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func kubeletCommand() *cobra.Command { return notHere("kubelet") }
func addonsCommand() *cobra.Command  { return notHere("addons") }

// notHere returns a command that fails on this system.
func notHere(name string) *cobra.Command {
	return &cobra.Command{Use: name, RunE: func(*cobra.Command, []string) error {
		return errors.New("living pods need Linux")
	}}
}
