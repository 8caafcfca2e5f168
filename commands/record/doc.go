// Package record keeps renders in folders: those of landscapes, and those of the cases of a
// catalogue. It writes no more than has changed, removes no file that no render wrote, and compares
// a record with a new render.
//
// What does not live here: rendering (render), how a difference is told (plan/golden).
package record
