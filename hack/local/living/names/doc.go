// Package names is the DNS server of a living cluster: the names of Services and of the Pods behind
// headless ones, as Kubernetes specifies them, and the names that the landscape declares by
// DNSRecords, of this cluster and of others. Any other name does not exist, unless there is an
// upstream server to ask.
//
// What a name's address leads to is the business of package services.
//
// Rights that it needs, in all namespaces: services list, watch; endpointslices.discovery.k8s.io
// list, watch; dnsrecords.extensions.gardener.cloud list, watch.
package names
