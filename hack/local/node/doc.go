// SPDX-License-Identifier: Apache-2.0

// Program node has the parts of a living local cluster besides its control plane. `node kubelet` is
// one node; `node addons` serves Services, names, volumes and Etcds once per cluster. Only program
// local starts them, inside the namespaces of package hold.
//
// It is a separate program because it contains the kubelet, which takes minutes to compile; program
// local compiles in seconds.
package main
