// Package adoption moves a landscape that gardener-operator and its companions run to Pergola, as
// docs/migration.md has it.
//
// Check compares what lives with what Git declares and writes nothing. Stop scales the controllers
// of upstream down, one after the other, and writes down what it did; Undo starts them again.
// Between the two it is `pergola apply` that takes over: how fields of other managers become
// Pergola's is in package apply (takeover.go).
//
// Not here: what an object would look like (render), and what a change of it means (plan); Check
// sorts what they say.
package adoption
