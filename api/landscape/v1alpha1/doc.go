// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kind Landscape of landscape.pergola.dev/v1alpha1, Pergola's own. A
// Landscape is the file `landscape.yaml` in a landscape folder. It is also the object in the
// runtime cluster that makes the operator sync that folder from Git. Fields that must be trusted
// (source, decryption, serviceAccountName, intervals) count only in the object: a commit may
// tighten them, never loosen them.
//
// +kubebuilder:object:generate=true
// +groupName=landscape.pergola.dev
package v1alpha1
