package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

func newGolden() *cobra.Command {
	var update bool
	var dir string
	cmd := &cobra.Command{
		Use:   "golden LANDSCAPE",
		Short: "Compare the render of a landscape with the recorded one",
		Long: `Renders the landscape and compares it, file by file and byte by byte, with the recorded files (default: folder
golden inside the landscape), and so the flows of its owners. Exit code 1 says that they differ; --update records anew and says how many files that changed.`,
		Example: `  pergola golden landscapes/local
  pergola golden landscapes/local --update`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := loadValid(cmd, args[0])
			if err != nil {
				return err
			}
			files, err := goldenFiles(l, catalogue(cmd))
			if err != nil {
				return err
			}
			if dir == "" {
				dir = filepath.Join(args[0], "golden")
			}
			if update {
				done, err := record(dir, files)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Golden: %s in %s.\n", done, dir)
				return err
			}
			return compareGolden(cmd, dir, files)
		},
	}
	cmd.Flags().BoolVar(&update, "update", false, "record the current render")
	cmd.Flags().StringVar(&dir, "dir", "", "folder of the recorded files (default: LANDSCAPE/golden)")
	return cmd
}

// goldenFiles are all files of a record: bundles and flows.
func goldenFiles(l *landscapes.Landscape, catalogue fs.FS) (map[string][]byte, error) {
	bundles, clusterOf, err := renderAll(l, catalogue)
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

func compareGolden(cmd *cobra.Command, dir string, files map[string][]byte) error {
	recorded, err := readTree(dir)
	if err != nil {
		return err
	}
	if len(recorded) == 0 {
		return fmt.Errorf("%s: nothing is recorded: run golden with --update first", dir)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(union(files, recorded))) {
		old, was := recorded[name]
		content, is := files[name]
		switch {
		case !was:
			out = append(out, fmt.Sprintf("+ %s: rendered, not recorded%s", name, renderedFrom(files, name)))
		case !is:
			out = append(out, fmt.Sprintf("- %s: recorded, not rendered", name))
		case !bytes.Equal(old, content):
			out = append(out, fmt.Sprintf("~ %s: %s%s", name, differences(old, content), renderedFrom(files, name)))
		}
	}
	if len(out) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "Golden: %d files agree.\n", len(files))
		return nil
	}
	for _, line := range out {
		fmt.Fprintln(cmd.OutOrStdout(), line)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d %s from the record: review with git diff after golden --update.\n", len(out), plural(len(out), "file differs", "files differ"))
	return errFinding
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
			return " (from " + origin + ")"
		}
	}
	return ""
}

// differences shows the first line that differs, around the place where it does, and counts the others.
func differences(a, b []byte) string {
	al, bl := strings.Split(strings.TrimSuffix(string(a), "\n"), "\n"), strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	first, more := -1, 0
	for i := range max(len(al), len(bl)) {
		if i < len(al) && i < len(bl) && al[i] == bl[i] {
			continue
		}
		if first < 0 {
			first = i
		} else {
			more++
		}
	}
	var text string
	switch {
	case first < 0:
		return "the line break at the end"
	case first >= len(bl):
		text = fmt.Sprintf("line %d is gone: %s", first+1, oneLine(al[first], 120))
	case first >= len(al):
		text = fmt.Sprintf("line %d is new: %s", first+1, oneLine(bl[first], 120))
	default:
		from, to := around(al[first], bl[first])
		text = fmt.Sprintf("line %d: %s → %s", first+1, from, to)
	}
	if more > 0 && len(al) == len(bl) {
		text += fmt.Sprintf(", and %d more %s", more, plural(more, "line", "lines"))
	} else if more > 0 {
		text += ", and what follows"
	}
	return text
}

// around leaves out most of what two lines begin with alike.
func around(a, b string) (string, string) {
	ar, br := []rune(a), []rune(b)
	same := 0
	for same < len(ar) && same < len(br) && ar[same] == br[same] {
		same++
	}
	if same > 60 {
		a, b = "…"+string(ar[same-30:]), "…"+string(br[same-30:])
	}
	return oneLine(a, 120), oneLine(b, 120)
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
