// SPDX-License-Identifier: Apache-2.0

// Package secrets is the secrets manager: it generates, finds, renews and rotates CAs,
// certificates, keys, tokens and kubeconfigs as Secrets of one namespace. Names, labels and data
// keys are those of Gardener (pkg/utils/secrets/manager), so an existing landscape's CAs, keys and
// tokens are adopted unchanged.
//
// Components declare requests (Config) in CUE. Values are of type Value, which never prints its
// content. Rendering gets a Fact of each secret, without a Value.
//
// The catalogue decides which secrets a component needs; controllers run the phases of a rotation.
package secrets
