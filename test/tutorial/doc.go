// Package tutorial has one test, which follows docs/tutorial.
package tutorial
