// Package across holds the rules that no single object shows: what objects of a landscape refer to
// exists, profiles offer what Shoots ask for, networks are disjoint, names are used once. They are
// written in Go, because each is a question of one object to an index of all; in CUE the cost would
// be that of the whole landscape for every object.
//
// What one object shows by itself, or with the few objects that schemas.Surroundings holds, is a
// rule in schemas/rules.
package across
