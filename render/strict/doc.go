// SPDX-License-Identifier: Apache-2.0

// Package strict checks rendered objects with the messages of package structure. Kubernetes kinds
// use the Go types of k8s.io/api and the validation of k8s.io/kubernetes, other kinds their
// definitions. It also reports images, probes and expressions that API servers accept and kubelets
// or operators reject (acceptedfaults.go). It is pure: it reads no files and does not access
// clusters.
package strict
