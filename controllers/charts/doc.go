// SPDX-License-Identifier: Apache-2.0

// Package charts pulls the Helm charts of Extensions and Gardenlets from OCI registries, and caches
// them by digest.
//
// Package source verifies digests and limits sizes; package render renders the charts.
package charts
