// SPDX-License-Identifier: Apache-2.0

// Package authorizer serves the authorization webhooks of a virtual garden's API server. They
// decide requests of gardenlets and extensions of a seed (POST /webhooks/auth/seed) and of a
// self-hosted Shoot (POST /webhooks/auth/shoot). Paths and meaning are those of upstream's
// SeedAuthorizer (pkg/admissioncontroller/webhook/auth). A seed's clients may only access objects
// that its Seed and Shoots refer to.
//
// identity.go identifies users, and rules_seed.go and rules_shoot.go have their permissions.
// graph.go has the objects of each seed. It follows watches (watch.go) of references
// (statements.go, shootstatement.go, references.go). Secrets and ConfigMaps are never read: only
// references name them. decision.go combines these, and handler.go is the webhook.
//
// Authorizers do not see the content of new objects (webhook/garden), and do not validate objects
// (package admission). components/garden/kube-apiserver configures the API server.
package authorizer
