// Package box runs a native program as a process that sees what a container would see: a root of
// its own with the folders and files it is given, its own process ids, hostname and IPC, the
// network namespace it is to be in, and only the capabilities it may keep. There are no images: the
// program is a static binary that is bound into the box like any other file.
//
// The program that makes boxes calls [Become] first thing in main. [Start] executes that same
// program once more in new namespaces, where Become furnishes the box and then executes the command
// in its place, so that the command is process 1, as in a container. What goes wrong before comes
// back as the error of Start. [Process.Exec] runs another command in a box that is there.
//
// Nothing outlives the program that made the box, also when that is killed: the kernel ends process
// 1 with it, and everything in the box with process 1. All mounts are in namespaces of the box and
// go with it.
//
// Without CAP_SYS_ADMIN a box gets a user namespace of its own, in which the caller is uid 0. Such
// a box cannot join a network namespace, and its capabilities are none over the network of the
// machine.
//
// Needs Linux 5.12 (mount_setattr); [Possible] says whether boxes can be made. Limits of memory and
// CPU, addresses, logs, volumes and everything that Kubernetes has to say about a pod are not here:
// a box does what it is told.
package box
