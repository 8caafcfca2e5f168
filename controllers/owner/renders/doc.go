// Package renders keeps what owners were rendered to.
package renders
