// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SyncSpec holds the fields of a Landscape that are read only from the object in the cluster.
// `landscape.yaml` may tighten the object's settings (a shorter timeout, a required signature),
// never loosen them.
type SyncSpec struct {
	// Repository or artifact that the landscape is synced from. Read only from the in-cluster
	// object.
	// +optional
	Source *Source `json:"source,omitempty"`
	// Keys for SOPS-encrypted files. Read only from the in-cluster object.
	// +optional
	Decryption *Decryption `json:"decryption,omitempty"`
	// ServiceAccount, in the namespace of the Landscape, that applies objects to the runtime
	// cluster. Unset: the operator's own. Read only from the in-cluster object.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// True pauses syncing: no revision is applied, no drift is repaired, and running components
	// stay unchanged. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// Reason and end of the pause. Ignored unless `suspend` is true.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`
	// Revision that the landscape is pinned to (`pergola rollback`). It is applied instead of
	// `source.ref` until the pin is removed. Read only from the in-cluster object.
	// +optional
	Pin *Pin `json:"pin,omitempty"`
	// Interval at which everything is compared and repaired even if nothing changed. Up to a tenth
	// is added, so that landscapes are not reconciled all at once. Default: 10m. Read only from the
	// in-cluster object.
	// +optional
	// +kubebuilder:validation:Format=duration
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Delay before a failed sync is retried. It doubles with each failure, up to `interval`. A new
	// revision is attempted at once. Default: 15s. Read only from the in-cluster object.
	// +optional
	// +kubebuilder:validation:Format=duration
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`
	// Timeout of one sync, including the wait for health. Default: 1h. If `landscape.yaml` sets
	// one, too, the shorter one applies.
	// +optional
	// +kubebuilder:validation:Format=duration
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Periods in which new revisions are applied. Outside of them revisions wait, and only drift is
	// repaired. Unset: always. A window in `landscape.yaml` can only restrict the time: both must
	// be open.
	// +optional
	// +listType=atomic
	Windows []SyncWindow `json:"windows,omitempty"`
	// Landscapes of the same namespace that must be applied and ready before this one is synced.
	// Read only from the in-cluster object.
	// +optional
	// +listType=map
	// +listMapKey=name
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// Ids of held deletions that are approved, each once, from `approval` or `together` in
	// `status.held`. `ID` approves deletions that the operator holds on `runtime` or `virtual`.
	// `SEED/ID` approves deletions that the gardenlet of a seed holds, with its `cluster` as SEED.
	// An id counts only there. `pergola approve` adds ids. Read only from the in-cluster object.
	// +optional
	// +listType=set
	Approved []string `json:"approved,omitempty"`
	// Whether deletions and recreations that a reviewer could not see are held. `Optional` lets the
	// deletion gate alone decide. `Required` also holds deletions and recreations that the rendered
	// diff between the last applied and the new revision does not show. `pergola diff` shows that
	// diff in the pull request. Default: `Optional`. `landscape.yaml` may require it, too.
	// +optional
	Review ReviewMode `json:"review,omitempty"`
	// Receivers of HTTP requests for a sync. Read only from the in-cluster object.
	// +optional
	// +listType=map
	// +listMapKey=name
	Receivers []Receiver `json:"receivers,omitempty"`
	// Notifications about events of the landscape. Read only from the in-cluster object.
	// +optional
	// +listType=map
	// +listMapKey=name
	Notifications []Notification `json:"notifications,omitempty"`
}

// Source is a folder of a Git repository or of an OCI artifact.
type Source struct {
	// URL of the repository (`https://`, `http://`, `ssh://` or `file://`) or of the artifact,
	// without tag (`oci://`).
	// +kubebuilder:validation:Pattern=`^(https?|ssh|file|oci)://.+$`
	URL string `json:"url"`
	// Revision to check out. Unset: branch `main`, or tag `latest` of an artifact.
	// +optional
	Ref *Reference `json:"ref,omitempty"`
	// Folder of the landscape within the repository. Unset: its root.
	// +optional
	Path string `json:"path,omitempty"`
	// Interval at which the repository is polled for new commits. Up to a tenth is added. Default:
	// 1m.
	// +optional
	// +kubebuilder:validation:Format=duration
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Timeout of one request for commits, including the transfer. Default: 2m.
	// +optional
	// +kubebuilder:validation:Format=duration
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Secret, in the namespace of the Landscape, with the credentials. HTTPS and OCI use `username`
	// and `password`, or `bearerToken`, and `ca.crt`, `tls.crt`, `tls.key`. SSH uses `identity`,
	// `known_hosts` and, for a key with a passphrase, `password`. OCI also accepts a Secret of type
	// `kubernetes.io/dockerconfigjson`.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// Secret, in the namespace of the Landscape, with the `address` of an HTTP, HTTPS or SOCKS5
	// proxy, and its `username` and `password`. Unset: no proxy.
	// +optional
	ProxySecretRef *LocalSecretReference `json:"proxySecretRef,omitempty"`
	// True also reads submodules, from the same host with the same credentials. Default: false;
	// then a landscape or a layer in a submodule is an error.
	// +optional
	Submodules bool `json:"submodules,omitempty"`
	// True allows credentials, and OCI artifacts, over plain HTTP. Default: false.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// Required signatures of commits. Unset: none. Git only.
	// +optional
	Verify *Verification `json:"verify,omitempty"`
}

// Reference selects a revision. The most exact field applies: commit (or digest), then semver, then
// tag, then branch.
type Reference struct {
	// Branch. Git only.
	// +optional
	Branch string `json:"branch,omitempty"`
	// Tag.
	// +optional
	Tag string `json:"tag,omitempty"`
	// Range of versions (`>=1.2.0 <2`): the highest matching tag is used. Pre-releases match only
	// if the range names one.
	// +optional
	SemVer string `json:"semver,omitempty"`
	// Commit, as 40 or 64 hexadecimal digits. Git only; if a branch is set, too, it must contain
	// the commit.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}|[0-9a-f]{64})?$`
	Commit string `json:"commit,omitempty"`
	// Digest of an OCI artifact (`sha256:…`).
	// +optional
	// +kubebuilder:validation:Pattern=`^(sha256:[0-9a-f]{64})?$`
	Digest string `json:"digest,omitempty"`
}

// VerificationMode selects the objects that must be signed.
// +kubebuilder:validation:Enum=HEAD;Tag;TagAndHEAD
type VerificationMode string

const (
	// VerifyHEAD requires a signature of the commit.
	VerifyHEAD VerificationMode = "HEAD"
	// VerifyTag requires a signature of the tag.
	VerifyTag VerificationMode = "Tag"
	// VerifyTagAndHEAD requires both.
	VerifyTagAndHEAD VerificationMode = "TagAndHEAD"
)

// Verification defines the required signatures.
type Verification struct {
	// Objects that must be signed: `HEAD`, `Tag` or `TagAndHEAD`. Default: `HEAD`.
	// +optional
	// +kubebuilder:default=HEAD
	Mode VerificationMode `json:"mode,omitempty"`
	// Secret, in the namespace of the Landscape, whose values are the trusted public keys. They are
	// armoured OpenPGP keys, or SSH keys in the form of authorized_keys or an allowed_signers file.
	SecretRef LocalSecretReference `json:"secretRef"`
}

// Decryption names the keys for SOPS-encrypted files.
type Decryption struct {
	// Secret, in the namespace of the Landscape, whose values are the private keys. Keys of age
	// identities end in `.agekey`.
	SecretRef LocalSecretReference `json:"secretRef"`
}

// Suspension is the reason for a pause of syncing.
type Suspension struct {
	// Reason for people.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// Time at which syncing resumes by itself. Unset: never.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Person who paused syncing.
	// +optional
	By string `json:"by,omitempty"`
}

// Pin fixes a landscape at one revision.
type Pin struct {
	// Commit, as 40 or 64 hexadecimal digits, or the digest of an OCI artifact.
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}|[0-9a-f]{64}|sha256:[0-9a-f]{64})$`
	Revision string `json:"revision"`
	// Reason for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// Person who pinned the landscape.
	// +optional
	By string `json:"by,omitempty"`
	// Time at which the landscape was pinned.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// SyncWindow is a recurring period.
type SyncWindow struct {
	// Start of the window as a cron expression: minute, hour, day of the month, month, day of the
	// week.
	// +kubebuilder:validation:MinLength=1
	Schedule string `json:"schedule"`
	// Time for which the window stays open.
	// +kubebuilder:validation:Format=duration
	Duration metav1.Duration `json:"duration"`
	// Time zone of the schedule, for example `Europe/Berlin`. Default: UTC.
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// Dependency is a Landscape of the same namespace.
type Dependency struct {
	// Name of the Landscape.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// ReviewMode decides whether unreviewed deletions are held.
// +kubebuilder:validation:Enum=Optional;Required
type ReviewMode string

const (
	// ReviewOptional lets the deletion gate alone decide.
	ReviewOptional ReviewMode = "Optional"
	// ReviewRequired also holds deletions and recreations that the rendered diff of the revisions
	// does not show.
	ReviewRequired ReviewMode = "Required"
)

// ReceiverType is the format of the requests.
// +kubebuilder:validation:Enum=github;gitlab;gitea;forgejo;hmac
type ReceiverType string

// Formats of requests.
const (
	ReceiverGitHub  ReceiverType = "github"
	ReceiverGitLab  ReceiverType = "gitlab"
	ReceiverGitea   ReceiverType = "gitea"
	ReceiverForgejo ReceiverType = "forgejo"
	// ReceiverHMAC accepts any request whose header X-Signature holds `sha256=` and the HMAC of
	// X-Timestamp, a dot and its body.
	ReceiverHMAC ReceiverType = "hmac"
)

// Receiver accepts requests for a sync at /hooks/NAMESPACE/LANDSCAPE/NAME of the operator.
type Receiver struct {
	// Name, the last part of the path.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Format of the requests: `github`, `gitlab`, `gitea`, `forgejo` or `hmac` (also for the
	// post-receive hook of a bare repository).
	Type ReceiverType `json:"type"`
	// Secret, in the namespace of the Landscape, whose key `token` authenticates the sender.
	SecretRef LocalSecretReference `json:"secretRef"`
}

// NotificationType is a way of sending notifications.
// +kubebuilder:validation:Enum=commitStatus;webhook
type NotificationType string

const (
	// NotifyCommitStatus sets a commit status on the forge.
	NotifyCommitStatus NotificationType = "commitStatus"
	// NotifyWebhook sends a JSON object by HTTP POST.
	NotifyWebhook NotificationType = "webhook"
)

// Notification is a receiver of events of the landscape.
// +kubebuilder:validation:XValidation:rule="self.type != 'commitStatus' || has(self.provider)",message="a commit status needs the provider of the forge"
// +kubebuilder:validation:XValidation:rule="self.type != 'webhook' || has(self.url)",message="a webhook needs a url"
type Notification struct {
	// Name among the notifications of the Landscape.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Way of sending: `commitStatus` or `webhook`.
	Type NotificationType `json:"type"`
	// Forge of a commit status.
	// +optional
	// +kubebuilder:validation:Enum=github;gitlab;gitea;forgejo
	Provider string `json:"provider,omitempty"`
	// Address of a webhook, or of the API of a forge. Unset: the forge at the host of `source.url`.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://.+$`
	URL string `json:"url,omitempty"`
	// Secret, in the namespace of the Landscape. `token` authorizes a commit status or signs
	// webhooks; `ca.crt` holds the trusted certificates.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// Events that a webhook gets: all (`info`) or only warnings (`warning`). Default: `info`.
	// +optional
	// +kubebuilder:validation:Enum=info;warning
	Severity string `json:"severity,omitempty"`
}

// LocalSecretReference is a Secret in the namespace of the Landscape.
type LocalSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}
