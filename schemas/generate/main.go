// SPDX-License-Identifier: Apache-2.0

// Command generate writes schemas/base, one closed CUE definition per kind, from the definitions in
// api/crds; and docs/reference/rules.md, the list of all rules.
//
// `make generate` runs `go run ./schemas/generate schemas/base` in the root of the repository. The
// output depends only on the input.
//
// CUE's importer (encoding/jsonschema.ExtractCRDs) leaves metadata, map keys, quantities and
// durations open. Its builtin functions cost more per object than plain constraints.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/rulebook"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate schemas/base")
		os.Exit(2)
	}
	base := os.Args[1]
	err := writeBaseDefinitions(base)
	if err == nil {
		err = writeRulesPage(filepath.Join(base, "..", ".."))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func writeBaseDefinitions(folder string) error {
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

// writeRulesPage writes docs/reference/rules.md in the root of the repository.
func writeRulesPage(root string) error {
	page, err := rulebook.RenderPage(filepath.Join(root, "schemas", "coverage.tsv"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "docs", "reference", "rules.md"), page, 0o644); err != nil {
		return fmt.Errorf("writing the list of rules: %w", err)
	}
	return nil
}
