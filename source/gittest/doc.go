// Package gittest serves real Git repositories on loopback for tests, over HTTP(S) and SSH, by the
// git command. Servers count requests and bytes, and can be made to fail.
//
// What does not live here: what is tested with them.
package gittest
