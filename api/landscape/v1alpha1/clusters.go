// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Clusters configures access to the clusters of a landscape. It holds no credentials, only
// references to them.
type Clusters struct {
	// Access to the runtime cluster, which runs the Garden. In the cluster, unset means the
	// operator's own cluster.
	// +optional
	Runtime *ClusterAccess `json:"runtime,omitempty"`
	// Access to the virtual garden. Unset: derived from the runtime cluster once the Garden runs
	// there, from Secret `garden/gardener-internal`. In the cluster, only Landscapes of namespace
	// `garden` get this access.
	// +optional
	Virtual *ClusterAccess `json:"virtual,omitempty"`
	// Access to seeds, by the name of the Seed. Ignored in the cluster, where a gardenlet runs in
	// its seed and pulls.
	// +optional
	Seeds map[string]ClusterAccess `json:"seeds,omitempty"`
}

// ClusterAccess configures access to one cluster. At most one of `secretRef` and `kubeconfig` is
// set; `context` selects a context of the kubeconfig in use.
// +kubebuilder:validation:XValidation:rule="!(has(self.kubeconfig) && has(self.secretRef))",message="kubeconfig and secretRef exclude each other"
type ClusterAccess struct {
	// Context of the kubeconfig. Unset: its current context.
	// +optional
	Context string `json:"context,omitempty"`
	// Path of a kubeconfig file, relative to `landscape.yaml` or absolute. Used only from a command
	// line; ignored in the cluster. Unset: the kubeconfig of the environment.
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
	// Namespace of the Secret. Unset: the namespace of the Landscape; from a command line `garden`.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Key within the Secret. Default: `kubeconfig`.
	// +optional
	Key string `json:"key,omitempty"`
}
