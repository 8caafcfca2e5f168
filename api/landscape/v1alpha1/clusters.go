package v1alpha1

// Clusters says how the clusters of a landscape are reached. It holds no credentials: only where to find them.
type Clusters struct {
	// The runtime cluster, which runs the Garden. In the cluster, unset means the cluster the operator runs in.
	// +optional
	Runtime *ClusterAccess `json:"runtime,omitempty"`
	// The virtual garden. Unset: access is derived from the runtime cluster once the Garden runs there, from Secret `garden/gardener-internal`. In
	// the cluster that is for Landscapes of namespace `garden` alone.
	// +optional
	Virtual *ClusterAccess `json:"virtual,omitempty"`
	// Seeds by the name of the Seed. In the cluster this is not used: a gardenlet runs in its seed and pulls.
	// +optional
	Seeds map[string]ClusterAccess `json:"seeds,omitempty"`
}

// ClusterAccess says how one cluster is reached. At most one of `secretRef` and `kubeconfig` is set; `context` picks
// an entry of whichever kubeconfig is used.
// +kubebuilder:validation:XValidation:rule="!(has(self.kubeconfig) && has(self.secretRef))",message="kubeconfig and secretRef exclude each other"
type ClusterAccess struct {
	// Context of the kubeconfig. Unset: its current context.
	// +optional
	Context string `json:"context,omitempty"`
	// Path of a kubeconfig file, relative to `landscape.yaml` or absolute. Only for use from a command line; ignored
	// in the cluster. Unset: the kubeconfig of the environment.
	// +optional
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Secret with a kubeconfig, in the cluster that holds the Landscape.
	// +optional
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`
}

// SecretKeyReference is a key of a Secret.
type SecretKeyReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Namespace of the Secret. Unset: that of the Landscape, from a command line `garden`.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Key within the Secret. Default: `kubeconfig`.
	// +optional
	Key string `json:"key,omitempty"`
}
