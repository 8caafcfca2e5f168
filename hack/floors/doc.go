// Package floors holds the folders of this module to the order that docs/architecture.md draws: imports go down, never up, and never to a folder of the
// same floor. It has a test and nothing else; tests and hack itself may import what they need.
package floors
