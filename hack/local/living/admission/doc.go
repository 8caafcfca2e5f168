// SPDX-License-Identifier: Apache-2.0

// Package admission sends pods to living nodes. A MutatingAdmissionPolicy of the API server selects
// pods whose images are all executables of the machine. It adds the node selector and the
// toleration of living nodes. A taint keeps other pods away.
//
// The policy also removes runAsUser, because only one user exists. With a single living node it
// turns required topology spreading into preferred spreading.
//
// The scheduler decides the rest (node, zones, spreading). The annotation local.pergola.dev/play:
// "true" makes kwok play a pod that could run; so does local.pergola.dev/never-ready.
package admission
