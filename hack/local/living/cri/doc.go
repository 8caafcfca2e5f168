// SPDX-License-Identifier: Apache-2.0

// Package cri is a container runtime for a kubelet in the same process. Its images are executables
// of this machine (package images). Its containers are processes in boxes (package box), with one
// network namespace per pod (package podnet).
//
// It implements the interfaces of k8s.io/cri-api as Go objects, without a socket. So the kubelet
// itself handles volumes, probes, restarts and their back-off, termination, status, events, log
// rotation and missing images.
//
// It lacks pulled images, cgroups, seccomp and devices; resource limits have no effect. All
// processes run as the user of the local clusters; runAsUser and fsGroup have no effect. Containers
// do not outlive this process; its successor finds none, and the kubelet starts them again.
package cri
