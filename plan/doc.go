// Package plan says what would change: between two renderings, or between a
// rendering and what lives. A Plan is one plain value with JSON tags; the diff
// before a merge, the dry run, the deletion gate and the engine all use it, and it is
// printed in one place (text, Markdown, HTML, JSON), alone or in a Report of several landscapes.
//
// Values of Secrets never enter a Plan: what may not be shown is replaced where
// fields are compared, not where they are printed.
//
// What does not live here: rendering (render), requests to a cluster (apply).
package plan
