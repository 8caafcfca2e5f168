// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig writes self-contained kubeconfig files: they refer to no other file, so they
// can be copied.
package kubeconfig
