// Package cri is a container runtime for a kubelet in the same process: it has the images of
// package images, which are executables of this machine, and runs their containers as processes in
// boxes (package box), each pod in a network namespace of its own (package podnet).
//
// It gives the kubelet the interfaces of k8s.io/cri-api as Go objects, without a socket between. So
// everything that is the kubelet's work is the kubelet's own here: volumes, probes, restarts and
// their back-off, termination, status, events, rotation of logs, images that cannot be had.
//
// What it does not have: images that are fetched, cgroups (resource limits do not limit), users
// (all processes are those of whoever runs the local clusters; runAsUser and fsGroup have no
// effect), seccomp, devices. Containers do not outlive the process: who comes after it finds none,
// and the kubelet starts them again.
package cri
