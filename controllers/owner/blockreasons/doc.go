// SPDX-License-Identifier: Apache-2.0

// Package blockreasons finds the reason why a step of a flow was not started.
package blockreasons
