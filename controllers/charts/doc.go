// Package charts pulls the Helm charts that Extensions and Gardenlets name from OCI registries, and
// keeps them by their digests.
//
// What a registry sends is compared with its digest and bounded in size by package source; what a
// chart renders to is package render's matter.
package charts
