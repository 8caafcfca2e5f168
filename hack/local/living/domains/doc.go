// Package domains answers for the DNS provider of a landscape: the names api.… that Gardens and
// Shoots have by their domains lead to the Services of their API servers, in the cluster where the
// control planes are. DNSRecords lead them to a gateway, which nobody plays that ends TLS; so these
// here go before.
//
// Rights that it needs, in all namespaces: gardens.operator.gardener.cloud and
// clusters.extensions.gardener.cloud list, watch; services get, list, watch.
package domains
