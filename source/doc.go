// Package source reads landscapes from Git. Here: any revision of a local
// repository as a file system, without a checkout.
//
// What does not live here: what the files mean (landscapes).
package source
