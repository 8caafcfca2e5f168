// SPDX-License-Identifier: Apache-2.0

// Package crds embeds the CustomResourceDefinitions generated from the types in folder api, which
// Pergola serves or consumes. hack/generate writes the YAML files; they are never edited manually.
// Components and controllers decide which cluster gets which definitions.
package crds
