// Package structure reads the structural schemas of the custom resource definitions in api/crds and
// says, in words for people, where an object departs from them.
//
// The CUE base in schemas/base is generated from the same nodes (see schemas/generate). CUE decides
// whether an object holds the structure; this package finds the words, because the errors of a CUE
// evaluation speak of CUE. Rules over several fields do not live here: see schemas/rules.
package structure
