// Package authorizer answers the webhooks by which the API server of a virtual garden asks what
// gardenlets and extensions of a seed may do (POST /webhooks/auth/seed), and those of a self-hosted
// Shoot (POST /webhooks/auth/shoot). Paths and meaning are those of upstream's SeedAuthorizer
// (pkg/admissioncontroller/webhook/auth): whoever works for a seed reaches what its Seed and Shoots
// refer to, and nothing else.
//
// identity.go says who asks, rules_seed.go and rules_shoot.go what each of them may do, graph.go
// what belongs to which seed: kept by watches (watch.go) of what objects refer to (statements.go,
// shoot.go, references.go). Secrets and ConfigMaps are never read: they are known by the names that
// others refer to them by. decide.go puts these together, handler.go is the webhook.
//
// What does not live here: what an object that a gardenlet creates may contain, which no authorizer
// is told; the validation of objects (package admission); how the API server is made to ask
// (components/garden/kube-apiserver).
package authorizer
