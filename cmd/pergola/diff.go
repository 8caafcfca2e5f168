package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/source"
)

func newDiff() *cobra.Command {
	var output, from, to string
	var live bool
	var access accessFlags
	cmd := &cobra.Command{
		Use:   "diff LANDSCAPE",
		Short: "Show what a change does to every cluster",
		Long: `Renders two Git revisions of a landscape and compares the results, and what they declare; without --to it takes
the work tree. With --live it compares with the clusters instead, by server-side dry run. Values of
Secrets are never shown.

Exit code 1 says that there are differences.`,
		Example: `  pergola diff landscapes/local
  pergola diff landscapes/local --from main --to HEAD -o markdown
  pergola diff landscapes/local --live`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var p plan.Plan
			var err error
			if live {
				if cmd.Flags().Changed("from") || cmd.Flags().Changed("to") {
					return errors.New("--live compares with the clusters: it goes without --from and --to")
				}
				p, err = liveDiff(cmd, args[0], access)
			} else {
				p, err = gitDiff(cmd, args[0], from, to)
			}
			if err != nil && p.Empty() {
				return err
			}
			if perr := plan.Print(cmd.OutOrStdout(), p, output, colored(cmd)); perr != nil {
				return perr
			}
			if err != nil {
				return err
			}
			if !p.Empty() {
				return errFinding
			}
			return nil
		},
	}
	outputFlag(cmd, &output, plan.FormatText, plan.FormatMarkdown, plan.FormatJSON)
	cmd.Flags().StringVar(&from, "from", "HEAD", "revision to compare from: branch, tag or commit")
	cmd.Flags().StringVar(&to, "to", "", "revision to compare to (default: the work tree)")
	cmd.Flags().BoolVar(&live, "live", false, "compare with the clusters by server-side dry run")
	access.add(cmd)
	return cmd
}

func gitDiff(cmd *cobra.Command, dir, from, to string) (plan.Plan, error) {
	repo, err := source.Open(dir)
	if err != nil {
		return plan.Plan{}, err
	}
	old, violations, fromCommit, err := loadAt(repo, dir, from)
	if err != nil {
		return plan.Plan{}, err
	}
	if err := valid(cmd.Context(), cmd, old, violations); err != nil {
		return plan.Plan{}, fmt.Errorf("revision %s: %w", from, err)
	}
	var new *landscapes.Landscape
	toName := "work tree"
	if to == "" {
		new, err = loadValid(cmd, dir)
	} else {
		var commit string
		new, violations, commit, err = loadAt(repo, dir, to)
		if err == nil {
			toName = short(commit)
			err = valid(cmd.Context(), cmd, new, violations)
		}
	}
	if err != nil {
		return plan.Plan{}, err
	}
	sealed := landscape.Locked(old)
	maps.Copy(sealed, landscape.Locked(new))
	before, err := places(old, catalogue(cmd), sealed)
	if err != nil {
		return plan.Plan{}, finding{fmt.Errorf("revision %s: %w", from, err)}
	}
	after, err := places(new, catalogue(cmd), sealed)
	if err != nil {
		return plan.Plan{}, finding{err}
	}
	p := plan.Bundles(before, after)
	p.From, p.To = short(fromCommit), toName
	gate, err := gateOf(new, nil)
	if err != nil {
		return p, err
	}
	gate.Apply(&p, totals(before))
	return p, nil
}

func short(commit string) string {
	if len(commit) > 10 {
		return commit[:10]
	}
	return commit
}

// places gives what a landscape declares and renders, and says where each bundle goes. Secrets in sealed keep
// their encrypted form.
func places(l *landscapes.Landscape, catalogue fs.FS, sealed map[apply.Ref]bool) ([]plan.Place, error) {
	bundles, clusterOf, err := renderAll(l, catalogue)
	if err != nil {
		return nil, err
	}
	out := landscape.Declared(l, sealed)
	for _, b := range bundles {
		out = append(out, plan.Place{Cluster: clusterOf(b), Bundle: b})
	}
	return out, nil
}

func totals(places []plan.Place) map[string]int {
	out := map[string]int{}
	for _, p := range places {
		out[p.Cluster] += len(p.Bundle.Objects)
	}
	return out
}

func liveDiff(cmd *cobra.Command, dir string, access accessFlags) (plan.Plan, error) {
	l, err := loadValid(cmd, dir)
	if err != nil {
		return plan.Plan{}, err
	}
	c, err := newConverger(cmd, l, access, nil, nil)
	if err != nil {
		return plan.Plan{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), access.timeout)
	defer cancel()
	p, err := c.Plan(ctx)
	if err != nil {
		return p, finding{err}
	}
	return p, nil
}
