// Package house holds the tree to the rules of docs/architecture.md: imports go down, never up, and
// never to a folder of the same floor; no struct of controllers or commands is too large; no
// program parses a text that is for people. It has tests and nothing else; tests and hack itself
// may import what they need.
package house
