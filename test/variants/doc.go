// SPDX-License-Identifier: Apache-2.0

// Package variants runs real control planes and checks that they follow their declarations. For
// example, audit events appear, Secrets are encrypted in etcd, tokens are accepted or rejected,
// pods are denied, and etcd members recover. A golden file shows a flag; here a process has it. The
// package has only tests.
//
// One landscape has all variants: landscapes/local with the overlay testdata/landscape. `pergola
// apply` converges its Garden and its Shoots once, on local clusters with running pods
// (hack/local). Then the tests check the result. They are skipped where the machine forbids
// namespaces.
//
// The environment variable PERGOLA_LOCAL names the command that starts the clusters; without it, it
// is built. For work on these tests, PERGOLA_VARIANTS names a folder whose clusters stay up between
// runs. You have to remove them (local clean --dir).
package variants
