// Package owner converges one Garden, Seed or Shoot: it makes the secrets its
// components ask for, renders them, runs the flow of the operation, waits for
// health, and writes conditions and lastOperation. The three kinds share all of it;
// what differs is a row in kinds.go.
//
// What does not live here: which owners there are and where their clusters are
// (landscape), how objects are sent (apply).
package owner
