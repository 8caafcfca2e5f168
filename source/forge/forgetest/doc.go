// Package forgetest is a forge for tests: a real HTTP server on loopback that answers the
// calls that are made of GitHub, GitLab, Gitea and Forgejo, at their paths and in their
// forms, and that can be made to fail as they do.
package forgetest
