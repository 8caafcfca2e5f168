// Package pki makes the keys and certificates of a local cluster: certificate authorities, leaf
// certificates signed by them, and service account keys, as PEM files in one folder. Files that are
// there and still good are kept.
package pki
