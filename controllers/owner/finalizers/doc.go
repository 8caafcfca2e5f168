// Package finalizers changes the finalizers of an object beside others who do.
package finalizers
