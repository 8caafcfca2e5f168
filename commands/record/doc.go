// SPDX-License-Identifier: Apache-2.0

// Package record stores rendered files of landscapes, and of a catalogue's cases, in folders. It
// writes only changed files, removes no file that no render wrote, and compares a record with a new
// render.
//
// Package render renders, plan/golden describes differences.
package record
