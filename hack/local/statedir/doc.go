// Package statedir knows the folder that holds everything of a set of local clusters: where each
// file is, what has been decided once and must stay (ports, address ranges), and who may change it
// now. It starts nothing.
package statedir
