// Package tally counts what was written, and says it in words.
package tally
