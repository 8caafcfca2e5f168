// SPDX-License-Identifier: Apache-2.0

package commands

// Finding is an error that is the result of a command, unlike a failure to run it: exit code 1.
type Finding struct{ Err error }

func (f Finding) Error() string { return f.Err.Error() }
func (f Finding) Unwrap() error { return f.Err }
