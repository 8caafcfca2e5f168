// Package commands holds the work of single commands of pergola: a person starts it, and it is done
// once. Flags are in cmd/pergola; status and why also print their results. The roles that run on
// their own are in controllers, which import nothing from here. Finding is the error of a command
// that found something.
//
//   - adoption: landscapes that upstream's controllers run, and how these are stopped
//   - comparison: what a landscape becomes on its clusters when one revision follows another
//   - manifest: objects in files, judged by themselves
//   - preview: the consequences of a change of a landscape, besides the difference of its renders
//   - record: renders kept in folders, and compared with new ones
//   - recovery: backups of what is in no Git, and their way back
//   - revisions: landscapes read from the work tree or a revision, and what is wrong with them
//   - status: the state of a landscape as a tree
//   - synced: a Landscape object, judged before an operator gets it
//   - why: where a field of an object comes from
package commands
