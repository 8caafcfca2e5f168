// Package receiver takes requests for a sync by HTTP: pushes as GitHub, GitLab, Gitea
// and Forgejo announce them, and requests of anybody who can compute an HMAC, such as
// the post-receive hook of a bare repository, who can follow the sync in the answer.
//
// Whoever calls is a stranger until the signature is proven: sizes, times, rates and
// memory are bounded, and who does not know the secret learns nothing.
//
// What does not live here: which Landscapes have receivers, and the sync itself
// (controllers/operator implements Requester).
package receiver
