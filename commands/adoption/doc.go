// SPDX-License-Identifier: Apache-2.0

// Package adoption moves a landscape from gardener-operator and its companions to Pergola
// (docs/howto/migrate-from-gardener.md).
//
// Check compares the live objects with Git and writes nothing. Stop scales upstream's controllers
// down one after the other and records that; Undo starts them again. In between, `pergola apply`
// takes over; package apply (takeover.go) takes the fields over from other managers.
//
// Package render renders the objects, and package plan explains a change; Check only classifies the
// result.
package adoption
