// SPDX-License-Identifier: Apache-2.0

// Package custom judges kinds by rules of a landscape: CEL expressions over the object `self`.
//
// Expressions have Kubernetes' extension libraries (optional types, lists, strings, regular
// expressions, quantities, IPs, semantic versions …). Their version is fixed, so that a landscape
// means the same in every release. Compilation reports all errors with positions; evaluation has a
// cost limit. A field that the object does not have is not an error: the object is progressing
// until the field is reported. Otherwise use has() or `self.?status.?phase.orValue("")`.
//
//	apiGroup: example.org
//	kind: Database
//	healthy: >-
//	  self.status.phase == "Running" &&
//	  self.status.observedGeneration == self.metadata.generation
//	progressing: self.status.?upgrade.orValue("") != ""
//	message: '"phase " + self.status.phase'
//
// Other packages use the answers (health), declare rules (api/landscape) and read objects.
package custom
