// Package commands holds the work of single commands of pergola: a person starts it, and it is done once. Flags and printing are in cmd/pergola,
// and roles that run by themselves are in controllers, which import none of this.
//
//   - adoption: landscapes that upstream's controllers run, and how these are stopped
//   - preview: the consequences of a change of a landscape, besides the difference of its renders
//   - recovery: backups of what is in no Git, and their way back
//   - status: the state of a landscape as a tree
//   - synced: a Landscape object, judged before an operator gets it
//   - why: where a field of an object comes from
package commands
