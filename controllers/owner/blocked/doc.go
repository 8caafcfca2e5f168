// Package blocked says for which step of a flow another one was not started.
package blocked
