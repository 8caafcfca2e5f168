// SPDX-License-Identifier: Apache-2.0

// Package pki creates the keys and certificates of a local cluster: certificate authorities, leaf
// certificates and service account keys, as PEM files in one folder. It reuses valid files.
package pki
