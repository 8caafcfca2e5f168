// SPDX-License-Identifier: Apache-2.0

package redact

// PrintFields is for tests outside of the package, which may import the printers.
var PrintFields = &printFields
