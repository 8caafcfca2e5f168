// SPDX-License-Identifier: Apache-2.0

package podnet

// Options configure one pod.
type Options struct {
	// Sysctls are settings of the namespace, such as net.core.somaxconn. Only network settings are
	// allowed: others belong to other namespaces.
	Sysctls map[string]string
}
