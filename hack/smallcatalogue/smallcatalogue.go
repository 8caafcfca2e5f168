// SPDX-License-Identifier: Apache-2.0

// Package smallcatalogue is for tests that render a few objects instead of the whole catalogue. It
// has the files that every catalogue needs; tests add components and flows.
package smallcatalogue

import (
	"fmt"
	"io/fs"
	"testing/fstest"

	"github.com/pergola-dev/pergola/components"
)

// New returns a catalogue without components: the module, the inputs of components, the language of
// flows, and the images. It panics if the program's catalogue lacks one of these files.
func New() fstest.MapFS {
	out := fstest.MapFS{}
	for _, name := range []string{"cue.mod/module.cue", "inputs.cue", "flow.cue", "imagevector.yaml"} {
		data, err := fs.ReadFile(components.FS, name)
		if err != nil {
			panic(fmt.Sprintf("the catalogue has no %s: %v", name, err))
		}
		out[name] = &fstest.MapFile{Data: data}
	}
	return out
}

// Flow returns the flow.cue of a kind of owner, with its nodes to reconcile and to delete.
func Flow(kind, reconcile, remove string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("package flow\n\n" + kind + ": _\n\nflow: reconcile: nodes: {" + reconcile + "}\nflow: delete: nodes: {" + remove + "}\n")}
}
