package podnet

// Options are what may be different from pod to pod.
type Options struct {
	// Sysctls are settings of the namespace, such as net.core.somaxconn. Only those of networks:
	// others belong to other namespaces.
	Sysctls map[string]string
}
