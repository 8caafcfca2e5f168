package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
)

func newValidate() *cobra.Command {
	var output, old string
	cmd := &cobra.Command{
		Use:   "validate PATH…",
		Short: "Check landscape folders or single manifests",
		Long: `Checks structure and rules and reports everything it finds, each with file, line and column.
PATH is a landscape folder (it has a landscape.yaml), a manifest in YAML, JSON or CUE, or - for standard input.`,
		Example: `  pergola validate landscapes/local
  pergola validate shoot.yaml --old shoot-before.yaml
  git show HEAD:garden.yaml | pergola validate - -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []schemas.Violation
			err := withOptions(cmd, func(opts landscapes.Options) error {
				for _, path := range args {
					found, err := validatePath(cmd, path, old, opts)
					if err != nil {
						return err
					}
					all = append(all, found...)
				}
				return nil
			})
			if err != nil {
				return err
			}
			schemas.Sort(all)
			if err := printViolations(cmd.OutOrStdout(), all, output); err != nil {
				return err
			}
			if schemas.HasErrors(all) {
				return errFinding
			}
			return nil
		},
	}
	outputFlag(cmd, &output, "text", "json", "github")
	cmd.Flags().StringVar(&old, "old", "", "the version before the change: adds the update rules (single manifests only)")
	return cmd
}

func validatePath(cmd *cobra.Command, path, old string, opts landscapes.Options) ([]schemas.Violation, error) {
	if path == "-" {
		data, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return validateManifest(cmd, "<stdin>", data, old, opts)
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no such file or directory: %s; give a landscape folder, a manifest, or - for standard input", path)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return validateManifest(cmd, path, data, old, opts)
	}
	if old != "" {
		return nil, errors.New("--old goes with a single manifest, not with a landscape folder")
	}
	l, violations, err := landscapes.Load(cmd.Context(), path, opts)
	if err != nil {
		return nil, err
	}
	found, err := l.Validate(cmd.Context(), schemas.Options{})
	found = append(found, configFindings(cmd, l)...)
	for i := range found {
		found[i].File = filepath.Join(path, found[i].File)
	}
	for i := range violations {
		violations[i].File = filepath.Join(path, violations[i].File)
	}
	return append(violations, found...), err
}

// configFindings are what landscape.yaml, overlays and recorded facts ask of the catalogue and cannot have.
func configFindings(cmd *cobra.Command, l *landscapes.Landscape) []schemas.Violation {
	if l.ConfigDeclaration == nil {
		return nil
	}
	return render.CheckLandscape(catalogue(cmd), l)
}

// validateManifest gives the static verdict of single objects.
func validateManifest(cmd *cobra.Command, name string, data []byte, old string, opts landscapes.Options) ([]schemas.Violation, error) {
	declarations, violations, err := landscapes.Parse(cmd.Context(), name, data, opts)
	if err != nil {
		return nil, err
	}
	before, err := oldVersions(cmd, old, opts)
	if err != nil {
		return nil, err
	}
	var inputs []schemas.Input
	for i := range declarations {
		d := &declarations[i]
		input := schemas.Input{Object: d.Object, Positions: d}
		if o, ok := before[identity(d)]; ok {
			input.Old = o.Object
		}
		inputs = append(inputs, input)
	}
	found, err := schemas.Validate(cmd.Context(), inputs, schemas.Options{})
	return append(violations, found...), err
}

func oldVersions(cmd *cobra.Command, path string, opts landscapes.Options) (map[string]*landscapes.Declaration, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--old: %w", err)
	}
	declarations, violations, err := landscapes.Parse(cmd.Context(), path, data, opts)
	if err != nil {
		return nil, fmt.Errorf("--old: %w", err)
	}
	if schemas.HasErrors(violations) {
		return nil, fmt.Errorf("--old: %s", violations[0])
	}
	out := map[string]*landscapes.Declaration{}
	for i := range declarations {
		out[identity(&declarations[i])] = &declarations[i]
	}
	return out, nil
}

func identity(d *landscapes.Declaration) string {
	return d.Object.GroupVersionKind().GroupKind().String() + "/" + d.Object.GetNamespace() + "/" + d.Object.GetName()
}

func printViolations(w io.Writer, violations []schemas.Violation, output string) error {
	switch output {
	case "json":
		if violations == nil {
			violations = []schemas.Violation{}
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(violations)
	case "github":
		for _, v := range violations {
			fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", v.Severity, escape(v.File), max(v.Line, 1), max(v.Column, 1),
				escape(v.Kind+" "+v.Name), strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(v.Field+": "+v.Message))
		}
		return nil
	}
	for _, v := range violations {
		fmt.Fprintln(w, v)
	}
	if len(violations) == 0 {
		fmt.Fprintln(w, "Valid: no findings.")
	}
	return nil
}

// escape follows the rules of GitHub workflow command properties.
func escape(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
