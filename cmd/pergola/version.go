// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/render"
)

// version is the version of the program and of its catalogue.
const version = components.Version

// commit is the commit of the build; the linker sets it (hack/build.sh, deploy/Dockerfile).
var commit string

// buildVersions describe how the program was built.
type buildVersions struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	Go        string `json:"go"`
	Platform  string `json:"platform"`
	Catalogue string `json:"catalogue"`
	Gardener  string `json:"gardener"`
}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program, its commit, Go, the catalogue and Gardener",
		Long: `Prints the versions of the program and its parts. A landscape names the version of the catalogue in
spec.catalogue.version. The version of Gardener belongs to the images that the catalogue names,
unless the landscape names others in spec.images. The commit ends in -dirty if files differed from
it, and is unknown if the program was built outside of a repository.`,
		Example: `  pergola version
  pergola version -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return printVersion(cmd, output) },
	}
	addOutputFlag(cmd, &output, "text", formatJSON)
	return cmd
}

func printVersion(cmd *cobra.Command, output string) error {
	gardener, err := render.GardenerVersion(catalogueFS(cmd))
	if err != nil {
		return err
	}
	v := buildVersions{version, buildCommit(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, components.Version, cmp.Or(gardener, "unknown")}
	if output == formatJSON {
		return printJSON(cmd, v)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "pergola version %s\n  commit     %s\n  go         %s %s\n  catalogue  %s\n  gardener   %s\n",
		v.Version, v.Commit, v.Go, v.Platform, v.Catalogue, v.Gardener)
	return err
}

// buildCommit returns the commit that the linker set, or that Go recorded.
func buildCommit() string {
	if commit != "" {
		return commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := cmp.Or(settings["vcs.revision"], "unknown")
	if settings["vcs.modified"] == "true" {
		revision += "-dirty"
	}
	return revision
}
