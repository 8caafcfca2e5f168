package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan/golden"
	"github.com/pergola-dev/pergola/render"
)

func newGolden() *cobra.Command {
	var update, components bool
	var dir, output string
	cmd := &cobra.Command{
		Use:   "golden LANDSCAPE | --components [OWNER/COMPONENT...]",
		Short: "Compare the render of a landscape, or of the cases of components, with the recorded one",
		Long: `Renders the landscape and compares it, file by file and byte by byte, with the recorded files (default: folder
golden inside the landscape), and so the flows of its owners. Differences are told by object and field.

With --components it renders the cases of the catalogue instead (components/OWNER/COMPONENT/cases/CASE.yaml), all or those of the
components that are named, and compares with what is recorded beside them. Components without cases are listed.

Exit code 1 says that they differ; --update records anew and says how many files that changed.`,
		Example: `  pergola golden landscapes/local
  pergola golden landscapes/local --update
  pergola golden --components garden/vpa --catalogue components
  pergola golden --components --catalogue components --update`,
		RunE: func(cmd *cobra.Command, args []string) error {
			hasty()
			switch {
			case components && dir != "":
				return errors.New("--dir is for landscapes: cases are recorded in the catalogue, beside them")
			case components:
				return goldenComponents(cmd, args, update, output)
			case len(args) != 1:
				return fmt.Errorf("give one landscape, or --components: got %d arguments", len(args))
			}
			return goldenLandscape(cmd, args[0], dir, update, output)
		},
	}
	outputFlag(cmd, &output, "text", formatJSON, formatGitHub)
	cmd.Flags().BoolVar(&update, "update", false, "record the current render")
	cmd.Flags().BoolVar(&components, "components", false, "render the cases of components instead of a landscape")
	cmd.Flags().StringVar(&dir, "dir", "", "folder of the recorded files (default: LANDSCAPE/golden)")
	return cmd
}

// goldenLandscape compares the render of a landscape with the recorded one, or records it.
func goldenLandscape(cmd *cobra.Command, landscape, dir string, update bool, output string) error {
	l, err := loadValid(cmd, landscape)
	if err != nil {
		return err
	}
	files, err := goldenFiles(cmd, l, catalogue(cmd))
	if err != nil {
		return err
	}
	if dir == "" {
		dir = filepath.Join(landscape, "golden")
	}
	if update {
		done, err := record(dir, files)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "Golden: %s in %s.\n", done, dir)
		return err
	}
	return compareGolden(cmd, dir, files, output)
}

// goldenFiles are all files of a record: bundles and flows.
func goldenFiles(cmd *cobra.Command, l *landscapes.Landscape, catalogue fs.FS) (map[string][]byte, error) {
	bundles, clusterOf, err := renderAll(cmd, l, catalogue)
	if err != nil {
		return nil, finding{err}
	}
	files, err := render.Files(bundles, clusterOf)
	if err != nil {
		return nil, err
	}
	flows, err := render.FlowFiles(l, catalogue, render.At(time.Now()))
	if err != nil {
		return nil, finding{err}
	}
	maps.Copy(files, flows)
	return files, nil
}

// recording says how many files a record has changed.
type recording struct{ written, removed, unchanged int }

func (r recording) String() string {
	return fmt.Sprintf("%d %s written, %d removed, %d unchanged", r.written, plural(r.written, "file", "files"), r.removed, r.unchanged)
}

// record replaces the files of a former render; those that are not rendered any more go.
func record(dir string, files map[string][]byte) (done recording, err error) {
	recorded, err := readTree(dir)
	if err != nil {
		return done, err
	}
	if alien := notRecorded(recorded); alien != "" {
		return done, fmt.Errorf("%s holds other files than a recorded render (%s): give an empty folder, or one that holds nothing but a former render", dir, alien)
	}
	for name := range recorded {
		if _, ok := files[name]; ok {
			continue
		}
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return done, err
		}
		done.removed++
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			if os.Remove(filepath.Join(dir, filepath.FromSlash(parent))) != nil {
				break // it is not empty
			}
		}
	}
	for name, content := range files {
		if old, ok := recorded[name]; ok && bytes.Equal(old, content) {
			done.unchanged++
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return done, err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return done, err
		}
		done.written++
	}
	return done, nil
}

// notRecorded gives a file that no bundle.yaml lists, if there is one: what a render did not write it must not remove.
func notRecorded(recorded map[string][]byte) string {
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if strings.HasPrefix(name, render.FlowFolder+"/") && path.Ext(name) == ".yaml" {
			continue
		}
		bundle, ok := recorded[path.Join(path.Dir(name), "bundle.yaml")]
		if !ok || path.Base(name) != "bundle.yaml" && !bytes.Contains(bundle, []byte(path.Base(name)+"  # ")) {
			return name
		}
	}
	return ""
}

// recordBeside proposes a folder of golden files beside one that has none.
func recordBeside(dir string) string {
	above := filepath.Dir(dir)
	entries, _ := os.ReadDir(above)
	for _, e := range entries {
		if beside := filepath.Join(above, e.Name()); beside != filepath.Clean(dir) && isRecord(beside) {
			return fmt.Sprintf("%s has some: give --dir %s, or ", beside, beside)
		}
	}
	return ""
}

// isRecord reports whether golden has written a folder: a flow is in each.
func isRecord(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, render.FlowFolder))
	return err == nil && info.IsDir()
}

// goldenReport is what a comparison with a record comes to.
type goldenReport struct {
	Files       int                 `json:"files"`
	Differences []golden.Difference `json:"differences"`
}

func compareGolden(cmd *cobra.Command, dir string, files map[string][]byte, output string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file: give the folder of the golden files", dir)
	}
	recorded, err := readTree(dir)
	if err != nil {
		return err
	}
	if len(recorded) == 0 {
		return fmt.Errorf("%s has no golden files: nothing is recorded: %srun golden with --update first", dir, recordBeside(dir))
	}
	report := goldenReport{Files: len(files), Differences: []golden.Difference{}}
	for _, name := range slices.Sorted(maps.Keys(union(files, recorded))) {
		found := golden.Compare(name, recorded[name], files[name])
		for i := range found {
			found[i].Origin = renderedFrom(files, name)
		}
		report.Differences = append(report.Differences, found...)
	}
	if err := printGolden(cmd, dir, report, output); err != nil {
		return err
	}
	if len(report.Differences) > 0 {
		return errFinding
	}
	return nil
}

func printGolden(cmd *cobra.Command, dir string, report goldenReport, output string) error {
	switch output {
	case formatJSON:
		return printJSON(cmd, report)
	case formatGitHub:
		return golden.AnnotateFiles(cmd.OutOrStdout(), withoutDigests(report.Differences), filepath.ToSlash(filepath.Clean(dir))+"/")
	}
	if len(report.Differences) == 0 {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "Golden: %d files agree.\n", report.Files)
		return err
	}
	var out strings.Builder
	counts, differ := map[string]int{}, map[string]bool{}
	for _, d := range report.Differences {
		counts[d.Action]++
		differ[d.File] = true
	}
	fmt.Fprintf(&out, "Golden: %s from the record: %d added, %d changed, %d removed.\n\n",
		plural(len(differ), "1 file differs", fmt.Sprintf("%d files differ", len(differ))), counts[golden.Added], counts[golden.Changed], counts[golden.Removed])
	for _, d := range report.Differences {
		out.WriteString(d.String())
	}
	out.WriteString("\nReview with git diff after golden --update.\n")
	_, err := io.WriteString(cmd.OutOrStdout(), out.String())
	return err
}

// withoutDigests leaves out what a bundle.yaml says once more of the objects beside it: their digest. A forge shows few annotations.
func withoutDigests(differences []golden.Difference) []golden.Difference {
	said := map[string]bool{}
	for _, d := range differences {
		if path.Base(d.File) != "bundle.yaml" {
			said[path.Dir(d.File)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(differences), func(d golden.Difference) bool {
		return d.Action == golden.Changed && path.Base(d.File) == "bundle.yaml" && said[path.Dir(d.File)] &&
			!slices.ContainsFunc(d.Fields, func(f change.Field) bool { return !strings.HasPrefix(f.Path, "digest.") })
	})
}

func union(a, b map[string][]byte) map[string][]byte {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// renderedFrom says where the object in a file comes from: its bundle.yaml knows.
func renderedFrom(files map[string][]byte, name string) string {
	for line := range bytes.Lines(files[path.Join(path.Dir(name), "bundle.yaml")]) {
		text := strings.Trim(strings.TrimPrefix(strings.TrimSpace(string(line)), "- "), "'")
		if origin, ok := strings.CutPrefix(text, path.Base(name)+"  # "); ok {
			return origin
		}
	}
	return ""
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
