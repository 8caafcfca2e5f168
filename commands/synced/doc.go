// Package synced judges a Landscape object before it is applied, by the functions with which the
// operator opens its source and its notifications. They need Secrets, which are in the cluster, so
// that stand-ins take their place. The settings in it are those of landscape.yaml, which package
// landscapes checks; how a landscape is synced is the operator's.
package synced
