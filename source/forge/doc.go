// Package forge speaks to GitHub, GitLab, Gitea and Forgejo: the status of a commit, and
// the one comment of a pull request that is kept up to date. It wraps
// github.com/jenkins-x/go-scm thinly. Where that library does not do what is needed, its
// client carries a request of ours: a comment or a status of GitLab goes in the body, not in
// the address, which GitLab limits. Gitea and Forgejo serve these calls in the form of
// GitHub, and are asked by its driver: the one for Gitea knows neither time limits nor
// certificates of one's own.
//
// What does not live here: what is said (plan, controllers/notification), and what forges
// send by themselves (source/receiver).
package forge
