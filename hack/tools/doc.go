// Package tools exists to give the module a package; the tools themselves are named in go.mod.
package tools
