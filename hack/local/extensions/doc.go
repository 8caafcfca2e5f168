// Package extensions plays provider extensions: it answers the objects of extensions.gardener.cloud
// as the controllers do that cannot run here.
//
// The player obeys the request alone: the annotation gardener.cloud/operation with reconcile,
// migrate or restore. A new generation without a request changes nothing, and wait-for-state is
// left alone, as the contract wants. A Secret that an object refers to and that does not exist is
// an error, which is retried. status.state stays; an object that has none gets one, so that a
// migration has something to carry.
//
// Annotations of an object tell the player to misbehave:
//
//	local.pergola.dev/fail: MESSAGE                 it fails with that message, also when it is deleted
//	local.pergola.dev/fail-codes: "CODE CODE"       and with these error codes
//	local.pergola.dev/slow: DURATION                it works that long
//	local.pergola.dev/older-generation: "true"      it answers for the generation before
package extensions
