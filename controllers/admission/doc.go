// Package admission serves the rules of package schemas, and the defaults of the API, as admission webhooks: the API server
// asks POST /validate before it stores or deletes an object, and POST /default before that. It also makes the
// webhook configurations that tell the API server so.
//
// What no object shows by itself (there is one Garden; namespace garden stays while there is one) is looked up in a cluster
// through Gardens. Rules across the landscape (offers of cloud profiles, free networks …) are not part of it.
//
// What does not live here: the rules (package schemas), the defaults (SetDefaults_* in api), flags (cmd/pergola).
package admission
