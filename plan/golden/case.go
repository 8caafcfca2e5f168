// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/render"
)

// Case is one set of inputs for rendering a component.
type Case struct {
	// Description describes the case for reviewers.
	Description string
	// BaseName is the file with the initial declarations, components/<owner>/cases/<base>.yaml;
	// default "default".
	BaseName string
	// Declarations are merged onto the base like a layer of a landscape: maps are merged, lists are
	// replaced, null removes. Other declarations are added.
	Declarations []map[string]any
	// Landscape is the spec of landscape.yaml, for images and components.
	Landscape map[string]any
	// Facts are the facts of the owner; missing facts stay symbolic.
	Facts render.Facts
	// Record is "objects", or "digests" to record only a digest of each object, for
	// CustomResourceDefinitions.
	Record string

	name, component string
}

// caseFile is the format of a case.
type caseFile struct {
	Description  string           `yaml:"about"`
	BaseName     string           `yaml:"base"`
	Declarations []map[string]any `yaml:"declarations"`
	Landscape    map[string]any   `yaml:"landscape"`
	Facts        map[string]any   `yaml:"facts"`
	Record       string           `yaml:"record"`
}

// Values of Case.Record.
const (
	recordModeObjects = "objects"
	recordModeDigests = "digests"
)

// maxCaseSize is the largest size of a case file, in bytes.
const maxCaseSize = 1 << 20

func readCase(catalogue fs.FS, component, name string) (Case, error) {
	file := path.Join(component, casesFolder, name+".yaml")
	data, err := readFile(catalogue, file)
	if err != nil {
		return Case{}, err
	}
	var written caseFile
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&written); err != nil && !errors.Is(err, io.EOF) {
		return Case{}, fmt.Errorf("%s: %w", file, err)
	}
	c := Case{Description: strings.TrimSpace(written.Description), BaseName: written.BaseName, Declarations: written.Declarations, Landscape: written.Landscape, Record: written.Record, name: name, component: component}
	if c.BaseName == "" {
		c.BaseName = "default"
	}
	if c.Record == "" {
		c.Record = recordModeObjects
	}
	switch {
	case c.Description == "":
		return c, fmt.Errorf("%s: about: say in a sentence what the case shows", file)
	case !slices.Contains([]string{recordModeObjects, recordModeDigests}, c.Record):
		return c, fmt.Errorf("%s: record: %q: want %s or %s", file, c.Record, recordModeObjects, recordModeDigests)
	case strings.ContainsAny(c.BaseName, `/\`):
		return c, fmt.Errorf("%s: base: %q: want the name of a file in %s", file, c.BaseName, path.Join(path.Dir(component), casesFolder))
	}
	facts, err := yaml.Marshal(written.Facts)
	if err == nil {
		err = yaml.UnmarshalStrict(facts, &c.Facts)
	}
	if err != nil {
		return c, fmt.Errorf("%s: facts: %w", file, err)
	}
	return c, nil
}

func readFile(catalogue fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(catalogue, name)
	if err != nil {
		return nil, fmt.Errorf("read a case: %w", err)
	}
	if info.Size() > maxCaseSize {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxCaseSize)
	}
	return fs.ReadFile(catalogue, name)
}

const casesFolder = "cases"

// ownerFolders are the folders of the catalogue with components.
var ownerFolders = []string{"garden", "seed", "shoot"}

// componentsOf returns the components of a catalogue, or only the given ones.
func componentsOf(catalogue fs.FS, only []string) ([]string, error) {
	var all []string
	for _, owner := range ownerFolders {
		entries, err := fs.ReadDir(catalogue, owner)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the catalogue: %w", err)
		}
		for _, entry := range entries {
			dir := path.Join(owner, entry.Name())
			if _, err := fs.Stat(catalogue, path.Join(dir, "component.cue")); err == nil {
				all = append(all, dir)
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the catalogue has no components: give the folder that contains garden, seed and shoot")
	}
	if len(only) == 0 {
		return all, nil
	}
	for _, name := range only {
		if !slices.Contains(all, name) {
			return nil, unknown.NameError("component in the catalogue", name, all)
		}
	}
	return slices.DeleteFunc(all, func(dir string) bool { return !slices.Contains(only, dir) }), nil
}

// casesOf returns the names of a component's cases, and the recorded files in their folders.
func casesOf(catalogue fs.FS, component string) (cases []string, recorded map[string][]byte, err error) {
	dir := path.Join(component, casesFolder)
	recorded = map[string][]byte{}
	err = fs.WalkDir(catalogue, dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == dir {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return err
		}
		if path.Dir(name) == dir {
			if path.Ext(name) == ".yaml" {
				cases = append(cases, strings.TrimSuffix(path.Base(name), ".yaml"))
			}
			return nil
		}
		recorded[name], err = fs.ReadFile(catalogue, name)
		return err
	})
	return cases, recorded, err
}
