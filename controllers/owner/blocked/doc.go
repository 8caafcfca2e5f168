// Package blocked finds the reason why a step of a flow was not started.
package blocked
