// Package smallcatalogue is for tests that render a few objects of their own in the place of the
// whole catalogue: it has what every catalogue begins with. Components and flows are added by the
// test.
package smallcatalogue

import (
	"fmt"
	"io/fs"
	"testing/fstest"

	"github.com/pergola-dev/pergola/components"
)

// New is a catalogue without components: the module, the inputs of components, the language of
// flows, and the images. It panics where the catalogue, which is part of the program, has no such
// file.
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

// Flow is the flow.cue of a kind of owner, with the nodes that reconcile and those that delete.
func Flow(kind, reconcile, remove string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("package flow\n\n" + kind + ": _\n\nflow: reconcile: nodes: {" + reconcile + "}\nflow: delete: nodes: {" + remove + "}\n")}
}
