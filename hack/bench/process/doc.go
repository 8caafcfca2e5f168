// Package process starts a program that is measured, and reads from /proc what it takes. Linux
// only.
//
// What does not live here: what is measured, and the commands whose end is waited for (hack/bench).
package process
