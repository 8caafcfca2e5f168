// SPDX-License-Identifier: Apache-2.0

// Package tools makes the modules of the built executables part of this module's go.mod. It is
// never compiled: its imports have the build tag "tools", so that the program itself builds
// quickly.
package tools
