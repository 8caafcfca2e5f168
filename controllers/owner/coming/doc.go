// Package coming knows what a plan has seen to be made, so that what comes after it is not taken
// for a fault.
package coming
