// Package facts reads what rendering has to know of clusters: versions, addresses, the status of
// extension objects, generated secrets, and the Seeds of a virtual garden. It writes nothing, and
// knows no run.
package facts
