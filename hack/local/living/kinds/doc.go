// SPDX-License-Identifier: Apache-2.0

// Package kinds watches custom resources whose CustomResourceDefinition may be created and deleted
// at any time.
//
// A kind that does not exist has no objects; that is not an error.
package kinds
