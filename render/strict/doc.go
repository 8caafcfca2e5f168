// Package strict checks rendered objects against the schemas of their kinds, in the words of package structure: the kinds of
// Kubernetes by the Go types of k8s.io/api and the validation of k8s.io/kubernetes, all others by their definitions. It is pure: it reads no files and asks no cluster.
package strict
