// Package comparison says what a landscape becomes on its clusters when one of its revisions
// follows another: it reads and judges both, renders what the change can reach, and gives the
// difference as a plan with what is held, refused or takes effect otherwise (commands/preview).
//
// No cluster is asked. What does not live here: reading revisions (commands/revisions), comparing
// what they render (plan), printing (cmd/pergola).
package comparison
