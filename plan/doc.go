// Package plan says what would change: between two renderings, or between a rendering and what
// lives, and what each change does beyond its object. It makes a change.Plan, and prints it in one
// place (text, Markdown, HTML, JSON), alone or in a Report of several landscapes.
//
// What does not live here: the types of a plan (change), comparing objects and hiding secrets
// (change/redact), recorded renders (plan/golden), the gate (controllers/permit), rendering
// (render), requests to a cluster (apply).
package plan
