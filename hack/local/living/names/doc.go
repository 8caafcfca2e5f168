// SPDX-License-Identifier: Apache-2.0

// Package names is the DNS server of a living cluster. It resolves Services and the Pods behind
// headless ones, as Kubernetes specifies. It also resolves DNSRecords of the landscape, in this and
// other clusters. Other names do not exist, unless there is an upstream server.
//
// Package services makes the addresses reachable.
//
// It needs, in all namespaces: services list, watch; endpointslices.discovery.k8s.io list, watch;
// dnsrecords.extensions.gardener.cloud list, watch.
package names
