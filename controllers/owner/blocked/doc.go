// SPDX-License-Identifier: Apache-2.0

// Package blocked finds the reason why a step of a flow was not started.
package blocked
