// SPDX-License-Identifier: Apache-2.0

// Package plan compares two renderings, or a rendering with live objects, and explains the
// consequences of each change. It makes a change.Plan, and prints it as text, Markdown, HTML or
// JSON, alone or in a Report of several landscapes.
//
// Not here: the types of a plan (change), comparing objects and hiding secrets (change/redact),
// recorded renders (plan/golden), the gate (controllers/permit), rendering (render), apply requests
// (apply).
package plan
