// SPDX-License-Identifier: Apache-2.0

// Package prerequisites records the kinds and namespaces that a plan creates, so that objects that
// need them do not fail.
package prerequisites
