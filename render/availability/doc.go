// Package availability says what high availability asks of workload: how many replicas, over which
// zones and nodes they are spread, and how long pods stay on a node that is gone.
//
// The rules are those of the webhook high-availability-config of gardener-resource-manager
// (upstream: pkg/resourcemanager/webhook/highavailabilityconfig). Rendering applies them to what
// the catalogue declares, so that a plan shows what the cluster will have; the webhook
// (controllers/resourcemanager/webhooks) applies them to what operators and extensions make. Who
// knows what of the cluster, and how it is asked, does not live here.
package availability
