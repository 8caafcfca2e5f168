// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// upstreamPrograms maps the names of upstream programs to roles: an image that replaces an upstream
// image gets the same arguments.
var upstreamPrograms = map[string]struct{ role, kind string }{
	"gardener-operator":             {"operator", "OperatorConfiguration"},
	"gardenlet":                     {"gardenlet", "GardenletConfiguration"},
	"gardener-resource-manager":     {"resource-manager", "ResourceManagerConfiguration"},
	"gardener-admission-controller": {"admission-controller", "AdmissionControllerConfiguration"},
	"gardener-controller-manager":   {"controller-manager", "ControllerManagerConfiguration"},
	"gardener-scheduler":            {"scheduler", "SchedulerConfiguration"},
}

// withRole inserts the subcommand if the arguments have none. It follows from the name of the
// program or the kind of its configuration file: upstream Deployments pass only args:
// --config=FILE.
func withRole(root *cobra.Command, name string, args []string) ([]string, error) {
	if cmd, _, err := root.Find(args); err != nil || cmd != root {
		return args, nil // args have a role, or an unknown word
	}
	if program, is := upstreamPrograms[path.Base(name)]; is {
		return prependRole(root, path.Base(name), program.role, args)
	}
	file := configArgument(args)
	if file == "" {
		return args, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("find the role by the configuration file: %w", err)
	}
	var configuration struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(raw, &configuration); err != nil {
		return nil, fmt.Errorf("find the role by the configuration file %s: %w", file, err)
	}
	for _, name := range slices.Sorted(maps.Keys(upstreamPrograms)) {
		if program := upstreamPrograms[name]; program.kind == configuration.Kind && strings.HasSuffix(groupOfAPIVersion(configuration.APIVersion), ".config.gardener.cloud") {
			return prependRole(root, name, program.role, args)
		}
	}
	var known []string
	for _, program := range upstreamPrograms {
		known = append(known, program.kind)
	}
	slices.Sort(known)
	return nil, fmt.Errorf("the configuration file %s has the kind %q of %q, which no role reads: name the role (pergola ROLE --config=FILE), or give one of %s", file,
		configuration.Kind, configuration.APIVersion, strings.Join(known, ", "))
}

// prependRole prepends the role to the arguments.
func prependRole(root *cobra.Command, program, role string, args []string) ([]string, error) {
	cmd, _, err := root.Find([]string{role})
	switch {
	case err != nil || cmd == root:
		return nil, fmt.Errorf("this version of Pergola has no role %s: leave the image of %s unchanged", role, program)
	case configArgument(args) != "" && cmd.Flags().Lookup("config") == nil:
		return nil, fmt.Errorf("the role %s has flags instead of the configuration file of %s: see pergola %s --help", role, program, role)
	}
	return append([]string{role}, args...), nil
}

// configArgument returns the value of --config, or "".
func configArgument(args []string) string {
	for i, arg := range args {
		if value, has := strings.CutPrefix(arg, "--config="); has {
			return value
		}
		if arg == "--config" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

func groupOfAPIVersion(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}
