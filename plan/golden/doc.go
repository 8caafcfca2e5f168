// SPDX-License-Identifier: Apache-2.0

// Package golden renders components from cases and compares the results with the recorded ones: the
// golden files of a catalogue.
//
// A case is a file components/<owner>/<component>/cases/<case>.yaml (see case.go). The folder
// <case> beside it has the recorded result: component.yaml, and a file with the objects of each
// bundle. A base, components/<owner>/cases/<base>.yaml, has the initial declarations of an owner's
// cases. All of it is data.
//
// Differences name object and field, with a YAML diff. Other packages render (render), compare
// objects (plan) and record landscapes (commands/record).
package golden
