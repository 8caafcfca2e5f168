// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/commands/recovery"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// restoreCommand is one run of `pergola restore`.
type restoreCommand struct {
	access       accessFlags
	from, output string
	clusters     []string
	dryRun       bool
}

func newRestore() *cobra.Command {
	var r restoreCommand
	cmd := &cobra.Command{
		Use:   "restore LANDSCAPE --from FILE",
		Short: "Restore a backup into new clusters, before the first apply",
		Long: `Writes the contents of a backup into clusters that have nothing of the landscape yet:

- the definition of the Garden, and the Garden of Git with its previous identity and
  status.credentials
- the Secrets of the secrets manager
- the records of operations

Then run pergola apply: it uses the same CAs, the same keys and the same names outside of the
clusters. Restore the etcd data before pergola apply; docs/howto/back-up-and-restore.md describes
all steps.

The backup is opened with the age key of one of its recipients (SOPS_AGE_KEY, SOPS_AGE_KEY_FILE or
the keys.txt of sops). If the cluster has another Garden or newly generated Secrets, the command
writes nothing and lists each of them. To complete an interrupted restore, run it again with the
same file; until then, the Garden is not reconciled. Seeds that have their Secrets are running, and
stay unchanged.

Exit code 1: the restore is refused, or a seed of the backup was not restored. With --dry-run, exit
code 1 means that the restore would write something.`,
		Example: `  pergola restore landscapes/local --from local.backup --dry-run
  pergola restore landscapes/local --from local.backup
  pergola restore landscapes/local --from local.backup --cluster runtime`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	addOutputFlag(cmd, &r.output, "text", "json")
	flags := cmd.Flags()
	flags.StringVar(&r.from, "from", "", "the backup")
	flags.StringArrayVar(&r.clusters, "cluster", nil, "cluster to restore (default: the runtime cluster, and the seeds that have nothing yet); may be given several times")
	flags.BoolVar(&r.dryRun, "dry-run", false, "only show what would be written; exit code 1 if anything would")
	r.access.register(cmd)
	_ = cmd.MarkFlagRequired("from")
	return cmd
}

func (r *restoreCommand) run(cmd *cobra.Command, dir string) error {
	archive, err := openBackup(r.from)
	if err != nil {
		return err
	}
	l, err := loadValid(cmd, dir)
	if err != nil {
		return err
	}
	c, err := newConverger(cmd, l, r.access, nil, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), r.access.timeout)
	defer cancel()
	restorer := recovery.Restorer{Archive: archive, Converger: c, Landscape: l.Config.Name, OnlyClusters: r.clusters}
	if r.dryRun {
		p, err := restorer.Plan(ctx)
		if err != nil {
			return err
		}
		if err := r.print(cmd, c, p, true); err != nil {
			return err
		}
		if p.HasWrites() || len(p.RefusedSteps()) > 0 {
			return errFinding
		}
		return unrestoredFinding(p)
	}
	p, err := restorer.Restore(ctx)
	if errors.As(err, new(*recovery.RefusedError)) {
		return commands.Finding{Err: err}
	}
	if err != nil {
		return err
	}
	if err := r.print(cmd, c, p, false); err != nil {
		return err
	}
	return unrestoredFinding(p)
}

// unrestoredFinding returns a finding if a part of the backup is not restored yet.
func unrestoredFinding(p *recovery.Plan) error {
	for _, left := range p.Skipped {
		if !left.IsRunning {
			return errFinding
		}
	}
	return nil
}

// restoreActionTexts names actions in the past tense.
var restoreActionTexts = map[recovery.Action]string{
	recovery.ActionCreate: "created", recovery.ActionComplete: "completed", recovery.ActionUnchanged: "left unchanged", recovery.ActionKeep: "left unchanged", recovery.ActionRefuse: "refused",
}

func (r *restoreCommand) print(cmd *cobra.Command, c *landscape.Converger, p *recovery.Plan, dry bool) error {
	out := cmd.OutOrStdout()
	if r.output == formatJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(p)
	}
	would := ""
	if dry {
		would = "would be "
	}
	counts, cluster := map[recovery.Action]int{}, ""
	for _, s := range p.Steps {
		if s.Cluster != cluster {
			cluster = s.Cluster
			fmt.Fprintf(out, "Cluster %s, at %s:\n", printable(cluster), printable(c.Cluster(cluster).RESTConfig().Host))
		}
		counts[s.Action]++
		if s.Action == recovery.ActionUnchanged {
			continue
		}
		reason := ""
		if s.Reason != "" {
			reason = ": " + s.Reason
		}
		fmt.Fprintf(out, "%s: %s%s%s\n", printable(s.String()), would, restoreActionTexts[s.Action], printable(reason))
	}
	for _, left := range p.Skipped {
		fmt.Fprintf(out, "%s: not restored: %s\n", printable(left.Cluster), printable(left.Reason))
	}
	as := counts[recovery.ActionUnchanged] + counts[recovery.ActionKeep]
	if dry {
		_, err := fmt.Fprintf(out, "Nothing was written. A restore of backup %s would create %d, complete %d, leave %d unchanged and refuse %d.\n", printable(p.Backup),
			counts[recovery.ActionCreate], counts[recovery.ActionComplete], as, counts[recovery.ActionRefuse])
		return err
	}
	_, err := fmt.Fprintf(out, "Backup %s is restored: %d created, %d completed, %d unchanged, %d refused.\n", printable(p.Backup), counts[recovery.ActionCreate], counts[recovery.ActionComplete],
		as, counts[recovery.ActionRefuse])
	return err
}
