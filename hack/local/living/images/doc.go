// SPDX-License-Identifier: Apache-2.0

// Package images maps container images to native executables of this machine, so that their pods
// can be living. The table has repositories, executables and the versions that they can emulate.
//
// Images are never pulled. Other files of an image (a shell, certificates) do not exist. Package
// cri runs the executables; package binaries provides them.
package images
