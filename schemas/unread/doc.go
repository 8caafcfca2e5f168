// Package unread knows the fields of declarations that nothing reads: no component of the catalogue
// and no controller. The table of these fields is derived from the sources (see generate), not kept
// by hand. It does not know which values are wrong: that is what the rules of package schemas are
// for.
package unread
