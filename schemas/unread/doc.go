// SPDX-License-Identifier: Apache-2.0

// Package unread lists the fields of declarations that no component of the catalogue and no
// controller reads. Command generate derives the table from the sources. Rules about values are in
// package schemas.
package unread
