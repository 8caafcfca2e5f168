// Package kept keeps results of validation on disk between runs, so that work follows the change
// and not the size of a landscape. A store is one file for one landscape, read at once and replaced
// at once: processes that use it at the same time see each other's whole files, never parts, and
// the last one wins, which costs the other one's work and nothing else.
//
// What does not live here: what a result is and what it depends on. Whoever keeps one makes a key
// of everything that the result depends on; the program itself, with the schemas and rules in it,
// is part of every key already.
package kept
