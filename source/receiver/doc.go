// SPDX-License-Identifier: Apache-2.0

// Package receiver accepts requests for a sync by HTTP: push events of GitHub, GitLab, Gitea and
// Forgejo, and requests with an HMAC. The post-receive hook of a bare repository sends such
// requests, and can follow the sync in the answer.
//
// A client is untrusted until its signature is verified: sizes, times, rates and memory are
// bounded, and clients without the secret learn nothing.
//
// Package controllers/operator implements Requester: it knows the receivers of Landscapes and
// syncs.
package receiver
