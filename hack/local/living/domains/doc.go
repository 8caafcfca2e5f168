// SPDX-License-Identifier: Apache-2.0

// Package domains replaces the DNS provider of a landscape. It resolves api.<domain> of Gardens and
// Shoots to the Services of their API servers, in the cluster of the control planes. These names
// precede DNSRecords, which point to a gateway that would end TLS and does not run here.
//
// It needs, in all namespaces: gardens.operator.gardener.cloud and
// clusters.extensions.gardener.cloud list, watch; services get, list, watch.
package domains
