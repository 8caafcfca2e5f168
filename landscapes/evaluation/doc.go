// Package evaluation turns CUE files into plain values with their places. CUE cannot be
// interrupted, and takes as much memory as a file asks for, so there are two evaluators of the same
// result: InProcess for files one trusts, and Pool, which sends them to worker processes that have
// limits, no environment and no network, and ends those that exceed them.
//
// Files and results go through pipes only: they may hold Secrets. What an object means is not
// decided here but in package landscapes.
package evaluation
