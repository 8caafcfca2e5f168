// SPDX-License-Identifier: Apache-2.0

// Package access finds the API servers that Pergola makes. The access to the virtual garden is in
// the runtime cluster, the access to a Shoot on its seed.
//
// Each API server has a Secret gardener-internal (upstream's name) with a kubeconfig in the
// namespace of its control plane. The reconciler of the Garden or Shoot writes it (Publish), as a
// copy under a fixed name of the Secret from the secrets manager. So clients need RBAC only for
// that Secret. A Secret that someone else has written is used unchanged.
//
// A connection of LazyConfig can exist before its Secret. It reads the Secret with the first
// request, caches it, and reads it again when the API server rejects it. So one connection survives
// the creation of a virtual garden, and rotations.
//
// TokenRenewer covers the opposite case: access that a process received once in a Secret and renews
// itself, as a gardenlet does.
//
// Certificates are not part of this package (the catalogue requests them from the secrets manager),
// nor is access that someone declares.
package access
