// SPDX-License-Identifier: Apache-2.0

// Package box runs a native program with a container's view of the system. The program has its own
// root with the declared files and folders, process ids, hostname, IPC, network namespace and
// capabilities. There are no images: the program is a static binary, bound into the box like any
// other file.
//
// A program that creates boxes calls [Become] first in main. [Start] executes that program again in
// new namespaces, where Become furnishes the box. Then Become executes the command, which is
// process 1, as in a container. Start returns earlier errors. [Process.Exec] runs another command
// in an existing box.
//
// Nothing outlives the program that created the box, even if it is killed. The kernel ends process
// 1 with the program, and the rest of the box with process 1. All mounts are in namespaces of the
// box and end with it.
//
// Without CAP_SYS_ADMIN a box gets its own user namespace, in which the caller is uid 0. Such a box
// cannot join a network namespace and has no capabilities over the machine's network.
//
// The package needs Linux 5.12 (mount_setattr); [Possible] reports whether boxes can be created. It
// does not implement limits of memory and CPU, addresses, logs, volumes or the API of pods.
package box
