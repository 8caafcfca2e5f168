// Command generate writes schemas/base: one CUE definition per kind, closed, from the definitions in api/crds.
//
// It is run by `make generate`, as `go run ./schemas/generate schemas/base`. Its output depends on its input only.
//
// CUE's own importer (encoding/jsonschema.ExtractCRDs) is not used because it leaves metadata, map keys, quantities and
// durations open, and because its calls of builtin functions cost more per object than plain constraints.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pergola-dev/pergola/schemas"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	kinds, err := schemas.StructuralKinds()
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(folder, "*.cue"))
	if err != nil {
		return fmt.Errorf("listing the files of the last run: %w", err)
	}
	for _, file := range old {
		if filepath.Base(file) == "doc.cue" {
			continue
		}
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("removing a file of the last run: %w", err)
		}
	}
	for _, kind := range kinds {
		source, err := kind.CUE()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, schemas.BaseFile(kind.GVK)), source, 0o644); err != nil {
			return fmt.Errorf("writing the definition of %s: %w", kind.GVK, err)
		}
	}
	return nil
}
