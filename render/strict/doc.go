// Package strict checks rendered objects in the words of package structure: Kubernetes kinds by the
// Go types of k8s.io/api and the validation of k8s.io/kubernetes, all other kinds by their
// definitions. It also reports images, probes and expressions that API servers accept and kubelets
// or operators refuse (beyond.go). It is pure: it reads no files and asks no cluster.
package strict
