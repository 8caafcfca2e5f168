// SPDX-License-Identifier: Apache-2.0

// Package references reads the ConfigMaps and Secrets that a Garden or Shoot refers to and that its
// control plane needs. It gets each by name, without lists or watches. For a Shoot, it makes the
// copies in the namespace of its control plane. From the credentials behind its binding, it makes
// the Secret that extensions use.
//
// Package schemas/crosscheck defines the references and their requirements. Package owner applies,
// repairs and deletes the copies like all bundles. The content of a Secret is only in its copy:
// never in facts or errors.
package references
