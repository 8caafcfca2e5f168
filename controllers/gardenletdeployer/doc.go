// SPDX-License-Identifier: Apache-2.0

// Package gardenletdeployer installs gardenlets for the first time. If the Seed of a Gardenlet in
// the virtual garden does not exist yet, it renders the chart that the Gardenlet names. It applies
// the objects to the runtime cluster, or to the cluster of the Gardenlet's kubeconfig, with a
// bootstrap token for the virtual garden. Once the Seed exists, the gardenlet updates itself.
//
// Package charts pulls charts, and package render renders them.
package gardenletdeployer
