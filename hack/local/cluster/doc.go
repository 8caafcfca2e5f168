// Package cluster says what a local cluster consists of, and brings clusters up, takes them down
// and reports on them. How a process is started is package process's business, where files are is
// package statedir's.
package cluster
