// Package golden renders components from cases and compares with what was recorded: the golden
// files of a catalogue.
//
// A case is a file components/<owner>/<component>/cases/<case>.yaml (see case.go); beside it, in a
// folder of its name, is what the component renders then: component.yaml, and a file for each
// bundle with its objects. A base, components/<owner>/cases/<base>.yaml, has the declarations that
// the cases of an owner begin with. All of it is data.
//
// Differences are told by object and field, with the YAML around them. What does not live here:
// rendering (render), comparing objects (plan), folders that records are kept in (commands/record).
package golden
