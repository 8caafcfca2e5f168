// SPDX-License-Identifier: Apache-2.0

// Package jsonschema makes JSON schemas of our CustomResourceDefinitions, for peers of the
// benchmarks. The product does not use them: it has CUE of the same definitions.
package jsonschema
