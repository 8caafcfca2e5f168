// SPDX-License-Identifier: Apache-2.0

// Package deploy installs Pergola itself: the Helm chart of its roles (charts/pergola), the
// Kustomize bases that are rendered from it (kustomize), and the image (Dockerfile). It renders the
// chart in the program (chart.go), so that `pergola install` needs no Helm.
//
// Other packages have the deployments for Gardens, Seeds and Shoots (components) and apply the
// objects (install, by package apply).
package deploy
