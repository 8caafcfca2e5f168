// Package rulebook says in words what the schemas ask for: it explains fields and rules to people
// (`pergola explain`), and writes docs/rules.md. It decides nothing: structure comes from package
// structure, the rules from packages schemas and across.
package rulebook
