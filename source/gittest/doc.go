// SPDX-License-Identifier: Apache-2.0

// Package gittest serves real Git repositories on loopback for tests, over HTTP(S) and SSH, with
// the git command. Servers count requests and bytes, and fail on request.
package gittest
