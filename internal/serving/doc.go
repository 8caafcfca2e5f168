// SPDX-License-Identifier: Apache-2.0

// Package serving serves the probe and metrics ports of a role. The role provides the checks and
// metrics.
package serving
