// SPDX-License-Identifier: Apache-2.0

// Package structure reads the structural schemas of the custom resource definitions in api/crds and
// explains in plain words how an object differs from them.
//
// schemas/generate derives the CUE base in schemas/base from the same nodes. CUE decides whether an
// object is valid; this package words the findings, because errors of CUE are about CUE. Rules over
// several fields are in schemas/rules.
package structure
