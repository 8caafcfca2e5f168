// SPDX-License-Identifier: Apache-2.0

// Package notification informs people about a Landscape: Kubernetes events, commit statuses on
// forges, and webhooks. Each destination has its own queue and rate: a slow one delays neither the
// sync nor the others, and drops its oldest events.
//
// Other packages decide about notifications (controllers/operator) and have the forges' APIs
// (source/forge).
package notification
