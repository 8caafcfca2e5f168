// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/commands/record"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

type renderOptions struct {
	output, dir               string
	cluster, component, owner string
}

func newRender() *cobra.Command {
	var o renderOptions
	cmd := &cobra.Command{
		Use:   "render LANDSCAPE",
		Short: "Render the bundles of every Garden, Seed and Shoot",
		Long: `Renders without any cluster. Values that only a cluster knows (names of generated secrets,
certificates) stay symbolic, as <name>-XXXXXXXX. The same inputs give the same bytes on every
machine.

With --output-dir, the folder contains this render and nothing else: files of a previous render are
deleted. A folder with files that no render wrote is rejected, and so is a folder inside the
landscape.`,
		Example: `  pergola render landscapes/local
  pergola render landscapes/local --component garden/vpa
  pergola render landscapes/local --output-dir rendered`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runRender(cmd, args[0], o) },
	}
	addOutputFlag(cmd, &o.output, "yaml", "json")
	cmd.Flags().StringVar(&o.dir, "output-dir", "", "write files <cluster>/<namespace>/<bundle>/… below this folder instead of printing")
	cmd.Flags().StringVar(&o.cluster, "cluster", "", "only bundles for this cluster (runtime, virtual, the name of a seed, \"shoot NAMESPACE/NAME\", or shoot for all of these)")
	cmd.Flags().StringVar(&o.component, "component", "", "only this component, e.g. garden/vpa")
	cmd.Flags().StringVar(&o.owner, "owner", "", "only this owner, e.g. seed/local, shoot/garden-local/local, or all of a kind, e.g. seed")
	return cmd
}

func runRender(cmd *cobra.Command, dir string, o renderOptions) error {
	tuneGCForCommand()
	if o.dir != "" {
		if err := checkOutsideLandscape(dir, o.dir); err != nil {
			return err
		}
	}
	l, err := loadValid(cmd, dir)
	if err != nil {
		return err
	}
	bundles, clusterOf, err := renderAll(cmd, l, catalogueFS(cmd))
	if err != nil {
		return commands.Finding{Err: err}
	}
	if err := o.checkFilters(bundles, clusterOf); err != nil {
		return err
	}
	var kept []render.Bundle
	for _, b := range bundles {
		if o.isSelected(b, clusterOf(b)) {
			kept = append(kept, b)
		}
	}
	if len(kept) == 0 && len(bundles) > 0 {
		return fmt.Errorf("no bundle matches all of %s: omit one of them", strings.Join(o.filters(), " and "))
	}
	switch {
	case o.dir != "":
		return writeFiles(cmd, kept, clusterOf, o.dir)
	case o.output == "json":
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		return enc.Encode(kept)
	}
	for _, b := range kept {
		manifest, err := render.ManifestYAML(b.Objects)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "# cluster %s, %s, component %s, bundle %s\n%s", clusterOf(b), b.Owner, b.Component, b.Name, manifest)
	}
	return nil
}

// checkFilters fails for the first filter that matches no bundle.
func (o renderOptions) checkFilters(bundles []render.Bundle, clusterOf func(render.Bundle) string) error {
	component := func(b render.Bundle) string { return b.Component }
	owner := func(b render.Bundle) string { return b.Owner.Path() }
	for _, filter := range []struct {
		flag, what, value string
		alone             renderOptions
		names             func(render.Bundle) string
	}{
		{"--cluster", "cluster with bundles", o.cluster, renderOptions{cluster: o.cluster}, clusterOf},
		{"--owner", "owner", o.owner, renderOptions{owner: o.owner}, owner},
		{"--component", "component with bundles", o.component, renderOptions{component: o.component}, component},
	} {
		if len(bundles) > 0 && !slices.ContainsFunc(bundles, func(b render.Bundle) bool { return filter.alone.isSelected(b, clusterOf(b)) }) {
			return fmt.Errorf("%s: %w", filter.flag, unknown.NameError(filter.what, filter.value, bundleNames(bundles, filter.names)))
		}
	}
	called := bundleNames(slices.DeleteFunc(slices.Clone(bundles), func(b render.Bundle) bool { return !b.Owner.HasName(o.owner) || b.Owner.Kind == o.owner }), owner)
	if len(called) > 1 {
		return fmt.Errorf("--owner: %s is the name of %d owners: give one of %s", o.owner, len(called), strings.Join(called, ", "))
	}
	return nil
}

// filters returns the given filters.
func (o renderOptions) filters() []string {
	var out []string
	for _, filter := range [][2]string{{"--cluster", o.cluster}, {"--owner", o.owner}, {"--component", o.component}} {
		if filter[1] != "" {
			out = append(out, filter[0]+" "+filter[1])
		}
	}
	return out
}

func (o renderOptions) isSelected(b render.Bundle, cluster string) bool {
	return (o.cluster == "" || o.cluster == cluster || b.Cluster == render.ClusterShoot && o.cluster == b.Cluster) && (o.component == "" || o.component == b.Component) &&
		(o.owner == "" || b.Owner.HasName(o.owner))
}

// renderAll renders a landscape with a catalogue. The returned function maps a bundle to its
// cluster.
func renderAll(cmd *cobra.Command, l *landscapes.Landscape, catalogue fs.FS) ([]render.Bundle, func(render.Bundle) string, error) {
	seeds, err := render.SeedsOfShoots(l)
	if err != nil {
		return nil, nil, err
	}
	bundles, err := render.All(l, catalogue, nil, render.WithTime(time.Now()), withCharts(cmd, l))
	return bundles, render.ClusterNamer(seeds), err
}

func writeFiles(cmd *cobra.Command, bundles []render.Bundle, clusterOf func(render.Bundle) string, dir string) error {
	files, err := render.BundleFiles(bundles, clusterOf)
	if err != nil {
		return err
	}
	done, err := record.Write(dir, files)
	if err == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "Rendered: %s in %s.\n", done, dir)
	}
	return err
}

// checkOutsideLandscape rejects a folder inside the landscape, where rendered files would be read
// as declarations.
func checkOutsideLandscape(landscape, dir string) error {
	home, err := resolvePath(landscape)
	if err != nil {
		return err
	}
	target, err := resolvePath(dir)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(home, target); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("--output-dir %s is inside the landscape, which would read the files as declarations: give a folder beside it (golden --update records a render inside)", dir)
	}
	return nil
}

// resolvePath returns the absolute path of a folder without links; the part that does not exist
// stays unchanged.
func resolvePath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for parent := abs; ; parent = filepath.Dir(parent) {
		real, err := filepath.EvalSymlinks(parent)
		if errors.Is(err, fs.ErrNotExist) && parent != filepath.Dir(parent) {
			continue
		}
		if err != nil {
			return "", err
		}
		rest, err := filepath.Rel(parent, abs)
		return filepath.Join(real, rest), err
	}
}

func bundleNames(bundles []render.Bundle, of func(render.Bundle) string) []string {
	set := map[string]bool{}
	for _, b := range bundles {
		set[of(b)] = true
	}
	return slices.Sorted(maps.Keys(set))
}
