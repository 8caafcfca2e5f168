// SPDX-License-Identifier: Apache-2.0

// Package stages has the kwok Stages for components that cannot run without containers (kubelets,
// etcd operators, load balancers, volumes), and runs kwok for them. Package extensions plays
// provider extensions.
//
// The Stages are the YAML files of this folder. A Stage with the annotation local.pergola.dev/kinds
// represents one Stage per listed kind; $(kind) in it is the kind, $(name) the kind in lower case.
// kwok chooses randomly between matching Stages, so at most one may match. It checks an object
// again after each patch, so a Stage makes a single patch, after which it no longer matches.
//
// kwok exits if the kind of a Stage is not served, and CRDs come later than kwok. So there are two.
// One has the Stages of core kinds and starts once. The other has the Stages of other served kinds,
// and the Keeper restarts it when these change. kwok's own Stage API is not enough: kwok checks an
// object when the first Stage of its kind arrives, but not for later Stages.
package stages
