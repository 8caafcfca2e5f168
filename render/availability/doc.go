// SPDX-License-Identifier: Apache-2.0

// Package availability implements high availability of workload: replicas, their spread over zones
// and nodes, and the time that pods stay on a failed node.
//
// It implements the rules of the webhook high-availability-config of gardener-resource-manager
// (upstream: pkg/resourcemanager/webhook/highavailabilityconfig). Rendering applies them to the
// catalogue's objects, so that a plan shows the cluster's future state. The webhook
// (controllers/resourcemanager/webhooks) applies them to objects of operators and extensions.
// Reading facts from a cluster is not part of this package.
package availability
