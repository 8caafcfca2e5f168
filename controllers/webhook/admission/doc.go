// Package admission serves the rules of package schemas, and what the API fills in, as admission
// webhooks: the API server asks POST /validate before it stores or deletes an object, and POST
// /default before that. It also makes the webhook configurations that tell the API server so.
//
// What no object shows by itself is looked up: that there is one Garden, and namespace garden stays
// while there is one, through Gardens; what the virtual garden offers (cloud profiles, Seeds,
// Projects …) through Surroundings, for mutations and for rules across the landscape. Secrets and
// ConfigMaps are never read.
//
// What does not live here: the rules (packages schemas and across), mutations (package mutation),
// the defaults (SetDefaults_* in api), flags (cmd/pergola).
package admission
