// Package notification tells people what becomes of a Landscape: Kubernetes events, the
// status of a commit on its forge, and webhooks. Whoever is told has a queue and a pace of
// its own: a slow one delays neither the sync nor the others, and drops its oldest.
//
// What does not live here: when something is worth telling (controllers/operator), and
// the forges' APIs (source/forge).
package notification
