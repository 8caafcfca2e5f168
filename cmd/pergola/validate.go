// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands/comparison"
	"github.com/pergola-dev/pergola/commands/manifest"
	"github.com/pergola-dev/pergola/commands/preview"
	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/commands/synced"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/report"
	"github.com/pergola-dev/pergola/source"
)

type validateCommand struct {
	cmd             *cobra.Command
	output, oldFile string
	// fromRevision is the revision to compare landscapes with.
	fromRevision string
	strict       bool
	// hasSeveralPaths reports whether more than one path was given.
	hasSeveralPaths bool
	opts            landscapes.Options
	// stdin is the content of standard input, for the source lines of findings.
	stdin []byte
}

func newValidate() *cobra.Command {
	v := &validateCommand{}
	cmd := &cobra.Command{
		Use: "validate PATH…",
		// The names of similar commands in other tools.
		SuggestFor: []string{"lint", "check", "vet"},
		Short:      "Check landscape folders or single manifests",
		Long: `Checks structure and rules, and reports all findings with file, line and column. It shows the source
line if the line cannot contain a secret. Warnings are accepted, unless --strict makes them errors.
"pergola explain" describes the field and the rule of a finding; -o json and sarif link to the
documentation of the kind.

--from and --old also report changes that the API would reject. As in the API, unchanged values may
have expired. A version of Kubernetes or of a machine image can be too old for a new Shoot, but not
for a Shoot that has it. Without --from, this is only a warning, even with --strict, because new
Shoots are not known.

--from also warns of settings of landscape.yaml that protect less than before, of another name of
the landscape, and of new operations that have expired.

PATH is a landscape folder (it has a landscape.yaml), a manifest in YAML, JSON or CUE, or - for
standard input.`,
		Example: `  pergola validate landscapes/local
  pergola validate landscapes/local --strict -o sarif > pergola.sarif
  pergola validate landscapes/local --from origin/main
  pergola validate shoot.yaml --old shoot-before.yaml
  git show HEAD:garden.yaml | pergola validate - -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v.cmd = cmd
			all, err := v.findings(args)
			if err != nil {
				return err
			}
			if err := report.Write(cmd.OutOrStdout(), all, report.Options{Format: v.output, ReadSource: v.readSource, Colored: isColored(cmd), DocumentationHint: true, Version: version}); err != nil {
				return err
			}
			if schemas.HasErrors(all) {
				return errFinding
			}
			return nil
		},
	}
	addOutputFlag(cmd, &v.output, report.Formats()...)
	cmd.Flags().StringVar(&v.oldFile, "old", "", "file with the manifests before the change: adds the rules of updates and deletions")
	cmd.Flags().StringVar(&v.fromRevision, "from", "", "Git revision before the change: adds the rules of updates and deletions (landscape folders)")
	cmd.Flags().BoolVar(&v.strict, "strict", false, "turn warnings into errors")
	return cmd
}

// findings returns the findings of all paths, sorted.
func (v *validateCommand) findings(paths []string) ([]schemas.Violation, error) {
	var all []schemas.Violation
	err := withLandscapeOptions(v.cmd, func(opts landscapes.Options) error {
		v.opts, v.hasSeveralPaths = opts, len(paths) > 1
		for _, path := range paths {
			found, err := v.validatePath(path)
			if err != nil {
				return err
			}
			all = append(all, found...)
		}
		return nil
	})
	if v.strict {
		for i := range all {
			// validity must not depend on the day: nothing shows whether such a violation is new
			if !all[i].NewOnly {
				all[i].Severity = schemas.SeverityError
			}
		}
	}
	schemas.SortViolations(all)
	return all, err
}

const stdinName = "<stdin>"

// readSource reads the file of a finding.
func (v *validateCommand) readSource(file string) ([]byte, error) {
	if file == stdinName {
		return v.stdin, nil
	}
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > landscapes.MaxFileSize {
		return nil, fmt.Errorf("%s cannot be shown", file)
	}
	return os.ReadFile(file)
}

// manifestChecker returns the settings to judge manifest files.
func (v *validateCommand) manifestChecker() manifest.Checker {
	return manifest.Checker{Options: v.opts, OldFile: v.oldFile, HasOtherFiles: v.hasSeveralPaths, Report: newReader(v.cmd).Report}
}

func (v *validateCommand) validatePath(path string) (_ []schemas.Violation, err error) {
	if path == "-" {
		if v.stdin, err = manifest.ReadLimited(v.cmd.InOrStdin()); err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return v.manifestChecker().Findings(v.cmd.Context(), stdinName, v.stdin)
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no such file or directory: %s; give a landscape folder, a manifest, or - for standard input", path)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if v.fromRevision != "" {
			return nil, errors.New("--from is for landscape folders; compare a manifest with another file with --old FILE")
		}
		data, err := manifest.ReadFileLimited(path)
		if err != nil {
			return nil, err
		}
		return v.manifestChecker().Findings(v.cmd.Context(), path, data)
	}
	if v.oldFile != "" {
		return nil, errors.New("--old is for a single manifest; compare a landscape folder with a Git revision with --from REV")
	}
	opts := v.opts
	opts.ResultCache = validationStore(v.cmd, path)
	l, violations, err := landscapes.Load(v.cmd.Context(), path, opts)
	if err != nil {
		return nil, err
	}
	violations = append(violations, l.CheckSops()...)
	v.reportEncrypted(l, violations)
	leftOut, err := revisions.IgnoredFiles(l)
	if err != nil {
		return nil, err
	}
	violations = append(violations, leftOut...)
	for i := range l.Declarations {
		violations = append(violations, synced.Check(&l.Declarations[i])...)
	}
	read := newReader(v.cmd)
	if v.fromRevision == "" {
		return read.FindingsSince(v.cmd.Context(), l, nil, violations)
	}
	repo, err := source.Open(path)
	if err != nil {
		return nil, err
	}
	former, err := comparison.Comparison{Reader: read, Repo: repo, Dir: path, From: v.fromRevision}.ReadBase(v.cmd.Context())
	if err != nil {
		return nil, err
	}
	found, err := read.FindingsSince(v.cmd.Context(), l, former.Landscape, violations)
	if err != nil {
		return nil, err
	}
	if !former.IsMissing {
		found = append(found, preview.ProtectionFindings(former.Landscape, l)...)
	}
	return append(found, preview.LateOperations(former.Landscape, l, time.Now())...), nil
}

// reportEncrypted prints how many Secrets no key decrypts: without a key, changed or moved
// encrypted values are not found.
func (v *validateCommand) reportEncrypted(l *landscapes.Landscape, found []schemas.Violation) {
	n := len(landscape.UndecryptableSecrets(l))
	if n == 0 || slices.ContainsFunc(found, func(v schemas.Violation) bool { return v.Rule == "landscape/sops" }) {
		return // the findings already say what is wrong with them
	}
	hint := "give a key with SOPS_AGE_KEY_FILE or SOPS_AGE_KEY"
	if len(v.opts.AgeIdentities) > 0 {
		hint = "the given key is not one of their recipients"
	}
	fmt.Fprintf(v.cmd.ErrOrStderr(), "Note: the values of %d Secrets are not decrypted, so damaged or moved values are not found: %s.\n", n, hint)
}
