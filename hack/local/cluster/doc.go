// SPDX-License-Identifier: Apache-2.0

// Package cluster defines the parts of a local cluster, brings clusters up, takes them down and
// reports their status. Package process starts processes; package statedir knows the paths.
package cluster
