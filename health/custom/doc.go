// Package custom judges kinds by rules that a landscape brings along: CEL expressions over the
// object, which is `self`.
//
// The expressions have Kubernetes' extension libraries (optional types, lists, strings, regular
// expressions, quantities, IPs, semantic versions …) as of a fixed version, so that a landscape
// means the same in every release. They are compiled once, with all errors and their positions at
// once, and their cost is bounded when they run. A field that the object lacks is not an error:
// what the rule asks for is not reported yet, and the object is on its way. Whoever wants another
// answer asks with has() or `self.?status.?phase.orValue("")`.
//
//	apiGroup: example.org
//	kind: Database
//	healthy: self.status.phase == "Running" && self.status.observedGeneration == self.metadata.generation
//	progressing: self.status.?upgrade.orValue("") != ""
//	message: '"phase " + self.status.phase'
//
// Not here: what becomes of the answers (health), where rules are declared (api/landscape), reading
// objects.
package custom
