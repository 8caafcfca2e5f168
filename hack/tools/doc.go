// SPDX-License-Identifier: Apache-2.0

// Package tools exists to give the module a package; go.mod names the tools.
package tools
