// SPDX-License-Identifier: Apache-2.0

// Package hold manages the namespaces of a local landscape: one user, network, process-id and mount
// namespace per state folder. Process 1 in them, the holder, keeps them open. Pods and Services
// have real addresses inside without conflicts on the machine, and all processes inside end with
// the holder, however it ends.
//
// The holder is this program, started again ("local hold"), and runs Serve. Other processes of the
// same user connect to a socket in the state folder. They run commands inside, forward loopback
// ports of the machine to addresses inside, and stop the holder. This package does not know the
// commands, or the namespaces of single pods (package podnet).
//
// Files keep their paths, but later mounts are not visible outside. The caller is root inside; no
// other user or group exists. A holder lives while its record file is locked, whatever the content,
// so a reused process id is never mistaken for it.
//
// The package needs Linux; elsewhere Possible returns an error.
package hold
