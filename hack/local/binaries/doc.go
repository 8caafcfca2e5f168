// SPDX-License-Identifier: Apache-2.0

// Package binaries finds the executables of a control plane, or builds them from the Go modules
// that hack/local's go.mod pins. It does not run them.
package binaries
