// Package conventions gives the apply engine what is Gardener's: the labels and annotations of
// ManagedResources, the kinds that are never deleted to be made anew, the field managers that hand
// their objects over, and the consequences of changes.
//
// The engine itself lives in apply, the consequences in plan. Neither knows the other.
package conventions
