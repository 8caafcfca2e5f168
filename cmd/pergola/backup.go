// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/commands/recovery"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/source"
)

// backupCommand is one run of `pergola backup`.
type backupCommand struct {
	access     accessFlags
	to, output string
	recipients []string
	files      []string
	clusters   []string
}

func newBackup() *cobra.Command {
	var b backupCommand
	cmd := &cobra.Command{
		Use:   "backup LANDSCAPE --to FILE",
		Short: "Save the data of a landscape that is not in Git: CAs, keys, the state of rotations",
		Long: `Reads data that would be lost with a cluster from the runtime cluster and the seeds, and writes it
into one file, encrypted with age:

- the Secrets of the secrets manager (Shoots: the Secrets that move with a control plane).
- status.credentials and the UID of the Garden.
- the records of executed operations.
- the Secrets and ConfigMaps that the Garden or a Landscape refers to and Git does not declare.

Nothing is written to a cluster. pergola restore restores the file. The file has no etcd data;
docs/howto/back-up-and-restore.md describes all steps, including etcd.

The file is encrypted for the recipients of --recipient and --recipients-file, else for the
recipients in the .sops.yaml of the landscape. It is written completely or not at all. The command
fails if a seed is unreachable; use --cluster to back up selected clusters.`,
		Example: `  pergola backup landscapes/local --to local.backup
  pergola backup landscapes/local --to local.backup --recipient age1… --cluster runtime
  pergola backup show local.backup`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return b.run(cmd, args[0]) },
	}
	addOutputFlag(cmd, &b.output, "text", "json")
	flags := cmd.Flags()
	flags.StringVar(&b.to, "to", "", "file to write; an existing file is replaced")
	flags.StringArrayVar(&b.recipients, "recipient", nil, "public age key of a recipient; may be given several times")
	flags.StringArrayVar(&b.files, "recipients-file", nil, "file with public age keys, one per line; may be given several times")
	flags.StringArrayVar(&b.clusters, "cluster", nil, "cluster to save, always with the runtime cluster (default: the runtime cluster and all seeds); may be given several times")
	b.access.register(cmd)
	_ = cmd.MarkFlagRequired("to")
	cmd.AddCommand(newBackupShow())
	return cmd
}

func (b *backupCommand) run(cmd *cobra.Command, dir string) error {
	// The Secrets of an invalid landscape can be lost, too.
	l, _, err := newReader(cmd).Load(cmd.Context(), dir)
	if err != nil {
		return err
	}
	recipients, err := b.collectRecipients(dir)
	if err != nil {
		return err
	}
	if l.Config.Name == "" {
		return fmt.Errorf("%s: landscape.yaml has no readable metadata.name", dir)
	}
	clusters, err := b.connect(cmd, l)
	for _, c := range clusters {
		defer c.Close()
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), b.access.timeout)
	defer cancel()
	from := recovery.Source{Landscape: l, Clusters: clusters, Clock: clock.RealClock{}, Program: version}
	if from.Revision, from.Dirty, err = revisionOf(dir); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "Note: the backup does not record the commit of the landscape: %v\n", err)
	}
	archive, err := recovery.Collect(ctx, from)
	if err != nil {
		return err
	}
	if err := recovery.WriteFile(b.to, archive, recipients...); err != nil {
		return err
	}
	if b.output == formatJSON {
		return printManifest(cmd, archive.Manifest)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "Backup %s of landscape %s is in %s: %s of %s. It has no etcd data: see docs/howto/back-up-and-restore.md.\n", archive.Manifest.ID, l.Config.Name, b.to,
		pluralForm(len(archive.Entries), "1 object", fmt.Sprintf("%d objects", len(archive.Entries))), pluralForm(len(archive.Manifest.Clusters), "1 cluster", fmt.Sprintf("%d clusters", len(archive.Manifest.Clusters))))
	return err
}

func (b *backupCommand) collectRecipients(dir string) ([]age.Recipient, error) {
	var out []age.Recipient
	for _, text := range b.recipients {
		found, err := recovery.ParseRecipients(text)
		if err != nil {
			return nil, fmt.Errorf("--recipient: %w", err)
		}
		out = append(out, found...)
	}
	for _, file := range b.files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--recipients-file: %w", err)
		}
		found, err := recovery.ParseRecipients(string(text))
		if err != nil {
			return nil, fmt.Errorf("--recipients-file %s: %w", file, err)
		}
		out = append(out, found...)
	}
	if len(out) > 0 {
		return out, nil
	}
	if len(b.recipients)+len(b.files) > 0 {
		return nil, errors.New("--recipient and --recipients-file name no recipient")
	}
	return recovery.SopsRecipients(dir)
}

// connect connects to the clusters to back up.
func (b *backupCommand) connect(cmd *cobra.Command, l *landscapes.Landscape) (map[string]*apply.Cluster, error) {
	names, err := landscape.ClusterNames(l)
	if err != nil {
		return nil, err
	}
	for _, name := range b.clusters {
		if !slices.Contains(names, name) || name == landscape.Virtual {
			known := slices.DeleteFunc(names, func(n string) bool { return n == landscape.Virtual })
			return nil, fmt.Errorf("--cluster %s: %w", name, unknown.NameError("cluster of the landscape with a backup", name, known))
		}
	}
	access, err := b.access.resolve(l)
	if err != nil {
		return nil, err
	}
	clusters := map[string]*apply.Cluster{}
	for _, name := range names {
		if name == landscape.Virtual || len(b.clusters) > 0 && name != landscape.Runtime && !slices.Contains(b.clusters, name) {
			continue
		}
		config, err := access.RESTConfig(l, name)
		if err != nil {
			return clusters, err
		}
		if clusters[name], err = conventions.NewCluster(name, config, apply.ClusterOptions{Kubectl: strings.TrimSpace("kubectl " + access.KubectlFlags(l, name))}); err != nil {
			return clusters, fmt.Errorf("cluster %s: %w", name, err)
		}
	}
	return clusters, nil
}

// revisionOf returns the commit of a landscape and whether files differ from it; "" outside a
// repository.
func revisionOf(dir string) (revision string, dirty bool, err error) {
	repo, err := source.Open(dir)
	if errors.Is(err, source.ErrNoRepository) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	rel, err := repo.RelativePath(dir)
	if err != nil {
		return "", false, err
	}
	commit, changed, err := repo.Uncommitted(rel)
	return commit, err != nil || len(changed) > 0, err
}

func newBackupShow() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "List the contents of a backup, without values",
		Long: `Opens a backup with the age key of one of its recipients (SOPS_AGE_KEY, SOPS_AGE_KEY_FILE or the
keys.txt of sops). It checks all of the backup and lists its contents: names, public data of
certificates, and salted checksums. It asks no cluster.`,
		Example: `  pergola backup show local.backup
  pergola backup show local.backup -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			archive, err := openBackup(args[0])
			if err != nil {
				return err
			}
			if output == formatJSON {
				return printManifest(cmd, archive.Manifest)
			}
			return showBackup(cmd, archive.Manifest)
		},
	}
	addOutputFlag(cmd, &output, "text", "json")
	return cmd
}

func openBackup(path string) (*recovery.Archive, error) {
	identities, err := ageIdentities()
	if err != nil {
		return nil, err
	}
	return recovery.ReadFile(path, identities...)
}

func printManifest(cmd *cobra.Command, m recovery.Manifest) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(m)
}

func showBackup(cmd *cobra.Command, m recovery.Manifest) error {
	out := cmd.OutOrStdout()
	revision := m.Landscape.Revision
	switch {
	case revision == "":
		revision = "without a Git commit"
	case m.Landscape.Dirty:
		revision += ", with uncommitted changes"
	}
	fmt.Fprintf(out, "Backup     %s, format %d, made %s by Pergola %s (catalogue %s)\n", m.ID, m.Version, m.Created.Format("2006-01-02 15:04:05 MST"), printable(m.Program), printable(m.Catalogue))
	fmt.Fprintf(out, "Landscape  %s, %s\n", printable(m.Landscape.Name), printable(revision))
	fmt.Fprintf(out, "Garden     %s, UID %s, cluster identity %s\n", printable(m.Garden.Name), printable(m.Garden.UID), printable(m.Garden.ClusterIdentity))
	for _, c := range m.Clusters {
		same := ""
		if c.SameAs != "" {
			same = ", the same cluster as " + c.SameAs
		}
		fmt.Fprintf(out, "Cluster    %s (%s)%s\n", printable(c.Name), printable(c.UID), same)
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "CLUSTER\tKIND\tNAME\tORIGIN\tCHECKSUM\tCERTIFICATE")
	for _, e := range m.Entries {
		certificate := ""
		if e.Certificate != nil {
			certificate = fmt.Sprintf("%s %s until %s", printable(e.Certificate.Subject), e.Certificate.SHA256[:16], e.Certificate.NotAfter.Format("2006-01-02"))
		}
		fmt.Fprintf(table, "%s\t%s\t%s/%s\t%s\t%s\t%s\n", printable(e.Cluster), printable(e.Kind), printable(e.Namespace), printable(e.Name), printable(string(e.Origin)), printable(e.SHA256[:min(16, len(e.SHA256))]), certificate)
	}
	return table.Flush()
}
