package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SyncSpec is the part of a Landscape that counts only from the object in the cluster. In `landscape.yaml` it may
// tighten the object's settings (a shorter timeout, a signature demanded), never loosen them.
type SyncSpec struct {
	// Repository the landscape is synced from. Counts only from the in-cluster object.
	// +optional
	Source *GitSource `json:"source,omitempty"`
	// Keys for SOPS-encrypted files. Counts only from the in-cluster object.
	// +optional
	Decryption *Decryption `json:"decryption,omitempty"`
	// ServiceAccount, in the namespace of the Landscape, as which objects are applied to the runtime cluster. Unset: the
	// operator's own. Counts only from the in-cluster object.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// True pauses syncing; what runs stays as it is. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// Interval at which everything is compared and repaired even if nothing changed. Default: 10m. Counts only
	// from the in-cluster object.
	// +optional
	// +kubebuilder:validation:Format=duration
	Interval *metav1.Duration `json:"interval,omitempty"`
	// How long one sync may take, waiting for health included. Default: 1h. Counts only from the in-cluster object.
	// +optional
	// +kubebuilder:validation:Format=duration
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// GitSource is a folder of a Git repository.
type GitSource struct {
	// URL of the repository: `https://`, `ssh://` or `file://`.
	// +kubebuilder:validation:Pattern=`^(https?|ssh|file)://.+$`
	URL string `json:"url"`
	// What is checked out. Unset: branch `main`.
	// +optional
	Ref *GitReference `json:"ref,omitempty"`
	// Folder of the landscape within the repository. Unset: its root.
	// +optional
	Path string `json:"path,omitempty"`
	// Interval at which the repository is asked for new commits. Default: 1m.
	// +optional
	// +kubebuilder:validation:Format=duration
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Secret, in the namespace of the Landscape, with the credentials: `username` and `password` or `bearerToken` for
	// HTTPS (and `ca.crt`), `identity` and `known_hosts` for SSH.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// Signatures demanded of commits. Unset: none.
	// +optional
	Verify *Verification `json:"verify,omitempty"`
}

// GitReference is what is checked out. The most exact one counts: commit, then tag, then branch.
type GitReference struct {
	// Branch.
	// +optional
	Branch string `json:"branch,omitempty"`
	// Tag.
	// +optional
	Tag string `json:"tag,omitempty"`
	// Commit, as 40 or 64 hexadecimal digits.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}|[0-9a-f]{64})?$`
	Commit string `json:"commit,omitempty"`
}

// VerificationMode is what has to be signed.
// +kubebuilder:validation:Enum=HEAD;Tag;TagAndHEAD
type VerificationMode string

const (
	// VerifyHEAD demands a signature of the commit.
	VerifyHEAD VerificationMode = "HEAD"
	// VerifyTag demands a signature of the tag.
	VerifyTag VerificationMode = "Tag"
	// VerifyTagAndHEAD demands both.
	VerifyTagAndHEAD VerificationMode = "TagAndHEAD"
)

// Verification says which signatures are demanded.
type Verification struct {
	// What has to be signed: `HEAD`, `Tag` or `TagAndHEAD`. Default: `HEAD`.
	// +optional
	// +kubebuilder:default=HEAD
	Mode VerificationMode `json:"mode,omitempty"`
	// Secret, in the namespace of the Landscape, whose values are the public keys that are trusted (OpenPGP or SSH).
	SecretRef LocalSecretReference `json:"secretRef"`
}

// Decryption says which keys open SOPS-encrypted files.
type Decryption struct {
	// Secret, in the namespace of the Landscape, whose values are the private keys; age identities have keys that end
	// in `.agekey`.
	SecretRef LocalSecretReference `json:"secretRef"`
}

// LocalSecretReference is a Secret in the namespace of the Landscape.
type LocalSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}
