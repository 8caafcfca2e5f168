// SPDX-License-Identifier: Apache-2.0

// Package extensions plays provider extensions: it reconciles objects of extensions.gardener.cloud
// like the controllers that cannot run here.
//
// The player reacts only to the annotation gardener.cloud/operation with reconcile, migrate or
// restore. As the contract says, it ignores a new generation without a request, and wait-for-state.
// A missing Secret that an object refers to is an error, and is retried. status.state does not
// change; an object without one gets one, so that a migration has data to move.
//
// Annotations of an object make the player misbehave:
//
//	local.pergola.dev/fail: MESSAGE             it fails with that message, also when deleted
//	local.pergola.dev/fail-codes: "CODE CODE"   and with these error codes
//	local.pergola.dev/slow: DURATION            the operation takes that long
//	local.pergola.dev/older-generation: "true"  it reports the generation before
package extensions
