// SPDX-License-Identifier: Apache-2.0

// Package forge sets commit statuses and maintains one comment of a pull request on GitHub, GitLab,
// Gitea and Forgejo. It is a thin wrapper of github.com/jenkins-x/go-scm.
//
// Where the library falls short, its client sends a request of this package: GitLab comments and
// statuses go into the body, because GitLab limits URLs. Gitea and Forgejo support these calls in
// GitHub's format, so they use the GitHub driver. The Gitea driver supports neither timeouts nor
// custom certificates.
//
// Packages plan and controllers/notification write the texts; source/receiver handles webhooks.
package forge
