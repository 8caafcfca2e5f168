package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/render"
)

func newGolden() *cobra.Command {
	var update bool
	var dir string
	cmd := &cobra.Command{
		Use:   "golden LANDSCAPE",
		Short: "Compare the render of a landscape with the recorded one",
		Long: `Renders the landscape and compares it, file by file and byte by byte, with the recorded files (default: folder
golden inside the landscape). Exit code 1 says that they differ; --update records anew.`,
		Example: `  pergola golden landscapes/local
  pergola golden landscapes/local --update`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := loadValid(cmd, args[0])
			if err != nil {
				return err
			}
			bundles, clusterOf, err := renderAll(l, catalogue(cmd))
			if err != nil {
				return finding{err}
			}
			files, err := render.Files(bundles, clusterOf)
			if err != nil {
				return err
			}
			if dir == "" {
				dir = filepath.Join(args[0], "golden")
			}
			if update {
				return record(dir, files)
			}
			return compareGolden(cmd, dir, files)
		},
	}
	cmd.Flags().BoolVar(&update, "update", false, "record the current render")
	cmd.Flags().StringVar(&dir, "dir", "", "folder of the recorded files (default: LANDSCAPE/golden)")
	return cmd
}

// record replaces the recorded files; files that are not rendered any more go.
func record(dir string, files map[string][]byte) error {
	recorded, err := readTree(dir)
	if err != nil {
		return err
	}
	if len(recorded) > 0 && !isRecord(recorded) {
		return fmt.Errorf("%s holds other files than a recorded render: give an empty folder, or one that golden --update has written", dir)
	}
	for name := range recorded {
		if _, ok := files[name]; !ok {
			if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				return err
			}
		}
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// isRecord says that every file belongs to a bundle: what golden did not write it must not remove.
func isRecord(recorded map[string][]byte) bool {
	for name := range recorded {
		if _, ok := recorded[path.Join(path.Dir(name), "bundle.yaml")]; !ok {
			return false
		}
	}
	return true
}

func compareGolden(cmd *cobra.Command, dir string, files map[string][]byte) error {
	recorded, err := readTree(dir)
	if err != nil {
		return err
	}
	if len(recorded) == 0 {
		return fmt.Errorf("%s: nothing is recorded: run golden with --update first", dir)
	}
	var out []string
	for name, content := range files {
		old, ok := recorded[name]
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("+ %s: rendered, not recorded", name))
		case !bytes.Equal(old, content):
			out = append(out, fmt.Sprintf("~ %s: %s", name, firstDifference(old, content)))
		}
	}
	for name := range recorded {
		if _, ok := files[name]; !ok {
			out = append(out, fmt.Sprintf("- %s: recorded, not rendered", name))
		}
	}
	if len(out) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "Golden: %d files agree.\n", len(files))
		return nil
	}
	for _, line := range sorted(out) {
		fmt.Fprintln(cmd.OutOrStdout(), line)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d files differ from the record: review with git diff after golden --update.\n", len(out))
	return errFinding
}

func firstDifference(a, b []byte) string {
	al, bl := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range al {
		if i >= len(bl) {
			return fmt.Sprintf("line %d is gone: %s", i+1, oneLine(string(al[i]), 120))
		}
		if !bytes.Equal(al[i], bl[i]) {
			return fmt.Sprintf("line %d: %s → %s", i+1, oneLine(string(al[i]), 120), oneLine(string(bl[i]), 120))
		}
	}
	return fmt.Sprintf("line %d is new: %s", len(al)+1, oneLine(string(bl[len(al)]), 120))
}

func readTree(dir string) (map[string][]byte, error) {
	out := map[string][]byte{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && p == "." {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return err
		}
		out[p], err = fs.ReadFile(root, p)
		return err
	})
	return out, err
}
