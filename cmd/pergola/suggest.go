// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/landscapes"
)

// commandAdvice gives advice for commands that other tools have.
var commandAdvice = map[string]string{
	"init":   "a landscape is a folder with landscape.yaml; docs/tutorial/first-garden.md has the first files",
	"create": "write a declaration into the landscape and run pergola apply",
	"delete": "remove the declaration from the landscape (see docs/howto/review-deletions.md); pergola apply --dry-run shows what that deletes",
	"logs":   "kubectl logs shows them; pergola status shows conditions and errors",
	"events": "kubectl get events shows them; pergola history shows the syncs of a Landscape",
	"edit":   "edit the files of the landscape, and see the effect with pergola diff",
}

// unknownCommand suggests a command or gives advice.
func unknownCommand(root *cobra.Command, name string) error {
	text := fmt.Sprintf("there is no command %q", name)
	var names []string
	for _, sub := range root.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	meant := root.SuggestionsFor(name)
	if better := suggest.Closest(name, names); len(meant) == 0 && better != "" {
		meant = []string{better}
	}
	if hint := commandAdvice[name]; hint != "" {
		return fmt.Errorf("%s: %s", text, hint)
	}
	if len(meant) > 0 {
		return fmt.Errorf("%s; did you mean %s?", text, strings.Join(meant, " or "))
	}
	return fmt.Errorf("%s; pergola --help lists the commands", text)
}

// flagValueForms describe the values of a flag by pflag type, because pflag returns the errors of
// the parsers.
var flagValueForms = map[string]string{
	"bool": "true or false; the flag alone means true", "duration": "a time with its unit, such as 30s, 5m or 1h30m",
	"int": "a whole number", "int32": "a whole number", "int64": "a whole number", "uint": "a whole number from 0",
}

// flagError suggests a flag and names the help. If the command does not exist, all flags after it
// are unknown, so it reports only the command.
func flagError(cmd *cobra.Command, err error) error {
	if !cmd.HasParent() && cmd.Flags().NArg() > 0 {
		return unknownCommand(cmd, cmd.Flags().Arg(0))
	}
	help := "; " + cmd.CommandPath() + " --help lists the flags"
	if wrong, is := errors.AsType[*pflag.InvalidValueError](err); is {
		if want := flagValueForms[wrong.GetFlag().Value.Type()]; want != "" {
			return fmt.Errorf("--%s %q: want %s", wrong.GetFlag().Name, wrong.GetValue(), want)
		}
	}
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return fmt.Errorf("%w%s", err, help)
	}
	name, known := missing.GetSpecifiedName(), []string{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if kubeconfig := cmd.Flags().Lookup("kubeconfig"); name == "context" && kubeconfig != nil {
		return fmt.Errorf("%w; set contexts in spec.clusters of landscape.yaml, or give --kubeconfig NAME=PATH: "+
			"only commands about a Landscape in a cluster (pergola history) take --context", err)
	}
	if better := suggest.Closest(name, known); len(name) > 1 && better != "" {
		return fmt.Errorf("%w; did you mean --%s?%s", err, better, strings.TrimPrefix(help, ";"))
	}
	return fmt.Errorf("%w%s", err, help)
}

// suggestLandscape adds the nearest landscape to an error about a folder that is not one: another
// argument, or a folder above or below.
func suggestLandscape(cmd *cobra.Command, args []string, err error) error {
	missing, is := errors.AsType[*landscapes.NoLandscapeError](err)
	if !is {
		return err
	}
	if n := slices.IndexFunc(args, isLandscape); n > 0 {
		return fmt.Errorf("%w; %s is one, and comes first: %s", err, args[n], cmd.UseLine())
	}
	dir, absErr := filepath.Abs(missing.Dir)
	if absErr != nil {
		return err
	}
	for parent := filepath.Dir(dir); parent != filepath.Dir(parent); parent = filepath.Dir(parent) {
		if isLandscape(parent) {
			return fmt.Errorf("%w; the folder above is one: %s", err, shortPath(parent))
		}
	}
	var near []string
	for _, pattern := range []string{filepath.Join(dir, "*"), filepath.Join(filepath.Dir(dir), "*"), "*", filepath.Join("landscapes", "*")} {
		found, _ := filepath.Glob(filepath.Join(pattern, revisions.LandscapeFile))
		for _, file := range found {
			if folder := shortPath(filepath.Dir(file)); !slices.Contains(near, folder) && len(near) < unknown.MaxListed {
				near = append(near, folder)
			}
		}
	}
	if len(near) == 0 {
		return err
	}
	if better := suggest.Closest(shortPath(dir), near); better != "" {
		return fmt.Errorf("%w; did you mean %s?", err, better)
	}
	return fmt.Errorf("%w; landscapes near it: %s", err, strings.Join(near, ", "))
}

func isLandscape(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, revisions.LandscapeFile))
	return err == nil && info.Mode().IsRegular()
}

// shortPath returns a path relative to the working directory if that is shorter.
func shortPath(dir string) string {
	here, err := os.Getwd()
	if err != nil {
		return dir
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	if rel, err := filepath.Rel(here, absolute); err == nil && len(rel) < len(absolute) {
		return rel
	}
	return dir
}
