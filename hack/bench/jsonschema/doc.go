// Package jsonschema makes JSON schemas of our CustomResourceDefinitions, for peers of the
// benchmarks that read those. It is of no use to the product, which has CUE made of the same
// definitions.
package jsonschema
