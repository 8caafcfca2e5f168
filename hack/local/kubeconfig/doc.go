// Package kubeconfig writes kubeconfig files that hold everything they need: no reference to
// another file, so that they can be copied.
package kubeconfig
