// SPDX-License-Identifier: Apache-2.0

// Package facts reads the input of rendering from clusters: versions, addresses, the status of
// extension objects, generated secrets, and the Seeds of a virtual garden. It writes nothing, and
// is independent of runs.
package facts
