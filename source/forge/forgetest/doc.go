// SPDX-License-Identifier: Apache-2.0

// Package forgetest is a forge for tests. Its HTTP server on loopback answers calls to GitHub,
// GitLab, Gitea and Forgejo, at their paths and in their formats. It fails like them on request.
package forgetest
