// SPDX-License-Identifier: Apache-2.0

// Package statedir manages the folder of a set of local clusters: the paths of files, permanent
// decisions (ports, address ranges) and the lock for changes. It starts nothing.
package statedir
