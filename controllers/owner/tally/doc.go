// Package tally counts written objects and formats the counts.
package tally
