package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SyncSpec is the part of a Landscape that counts only from the object in the cluster. In `landscape.yaml` it may
// tighten the object's settings (a shorter timeout, a signature demanded), never loosen them.
type SyncSpec struct {
	// Repository or artifact the landscape is synced from. Counts only from the in-cluster object.
	// +optional
	Source *Source `json:"source,omitempty"`
	// Keys for SOPS-encrypted files. Counts only from the in-cluster object.
	// +optional
	Decryption *Decryption `json:"decryption,omitempty"`
	// ServiceAccount, in the namespace of the Landscape, as which objects are applied to the runtime cluster. Unset: the
	// operator's own. Counts only from the in-cluster object.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// True pauses syncing: no new revision is applied and no drift is repaired; what runs stays as it is. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// Why and until when syncing is paused. Only looked at while `suspend` is true.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`
	// Revision that the landscape is pinned to (`pergola rollback`): it is applied instead of what `source.ref` names, until the
	// pin is taken away. Counts only from the in-cluster object.
	// +optional
	Pin *Pin `json:"pin,omitempty"`
	// Interval at which everything is compared and repaired even if nothing changed. Up to a tenth is added to it, so that not
	// all landscapes are looked at in the same moment. Default: 10m. Counts only from the in-cluster object.
	// +optional
	// +kubebuilder:validation:Format=duration
	Interval *metav1.Duration `json:"interval,omitempty"`
	// How soon a sync that failed is tried again; the time doubles with each failure, up to `interval`. A new revision is tried at
	// once. Default: 15s. Counts only from the in-cluster object.
	// +optional
	// +kubebuilder:validation:Format=duration
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`
	// How long one sync may take, waiting for health included. Default: 1h. Where landscape.yaml has one, too, the shorter
	// one counts.
	// +optional
	// +kubebuilder:validation:Format=duration
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Times in which new revisions are applied; outside of them they wait, and only drift is repaired. Unset: always. In
	// `landscape.yaml` a window can only take time away: both have to be open.
	// +optional
	// +listType=atomic
	Windows []SyncWindow `json:"windows,omitempty"`
	// Landscapes of the same namespace that have to be applied and ready before this one is synced. Counts only from the
	// in-cluster object.
	// +optional
	// +listType=map
	// +listMapKey=name
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// Held deletions that may pass, each once, by the ids that `status.held` shows (`approval` or `together`): `ID` for what the operator holds on
	// `runtime` or `virtual`, `SEED/ID` for what the gardenlet of a seed holds, with its `cluster` as SEED; an id counts there and nowhere else.
	// `pergola approve` adds them. Counts only from the in-cluster object.
	// +optional
	// +listType=set
	Approved []string `json:"approved,omitempty"`
	// Whether deletions and recreations that a reviewer could not see are held. `Optional` lets the deletion gate alone decide;
	// `Required` holds besides each deletion and recreation that is not in the rendered difference between the revision that was
	// applied last and the new one (what `pergola diff` shows in the pull request). Default: `Optional`. `landscape.yaml` may demand it, too.
	// +optional
	Review ReviewMode `json:"review,omitempty"`
	// Who may ask for a sync by HTTP. Counts only from the in-cluster object.
	// +optional
	// +listType=map
	// +listMapKey=name
	Receivers []Receiver `json:"receivers,omitempty"`
	// Who is told what happens. Counts only from the in-cluster object.
	// +optional
	// +listType=map
	// +listMapKey=name
	Notifications []Notification `json:"notifications,omitempty"`
}

// Source is a folder of a Git repository or of an OCI artifact.
type Source struct {
	// URL of the repository (`https://`, `http://`, `ssh://` or `file://`) or of the artifact, without tag (`oci://`).
	// +kubebuilder:validation:Pattern=`^(https?|ssh|file|oci)://.+$`
	URL string `json:"url"`
	// What is checked out. Unset: branch `main`; of an artifact the tag `latest`.
	// +optional
	Ref *Reference `json:"ref,omitempty"`
	// Folder of the landscape within the repository. Unset: its root.
	// +optional
	Path string `json:"path,omitempty"`
	// Interval at which the repository is asked for new commits. Up to a tenth is added to it. Default: 1m.
	// +optional
	// +kubebuilder:validation:Format=duration
	Interval *metav1.Duration `json:"interval,omitempty"`
	// How long one request for commits may take, the transfer included. Default: 2m.
	// +optional
	// +kubebuilder:validation:Format=duration
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Secret, in the namespace of the Landscape, with the credentials: `username` and `password`, or `bearerToken`, for
	// HTTPS and OCI (and `ca.crt`, `tls.crt`, `tls.key`), `identity`, `known_hosts` and, for a key with a passphrase, `password` for SSH.
	// An OCI artifact takes also a Secret of type `kubernetes.io/dockerconfigjson`.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// Secret, in the namespace of the Landscape, with the `address` of an HTTP, HTTPS or SOCKS5 proxy, and its `username` and `password`.
	// Unset: no proxy.
	// +optional
	ProxySecretRef *LocalSecretReference `json:"proxySecretRef,omitempty"`
	// True reads submodules, too, of the same host and with the same credentials. Default: false; then a landscape or a layer in a
	// submodule is an error.
	// +optional
	Submodules bool `json:"submodules,omitempty"`
	// True allows credentials, and OCI artifacts, over plain HTTP. Default: false.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// Signatures demanded of commits. Unset: none. Git only.
	// +optional
	Verify *Verification `json:"verify,omitempty"`
}

// Reference is what is checked out. The most exact one counts: commit (or digest), then semver, then tag, then branch.
type Reference struct {
	// Branch. Git only.
	// +optional
	Branch string `json:"branch,omitempty"`
	// Tag.
	// +optional
	Tag string `json:"tag,omitempty"`
	// Range of versions (`>=1.2.0 <2`): the highest tag in it counts; pre-releases only where the range names one.
	// +optional
	SemVer string `json:"semver,omitempty"`
	// Commit, as 40 or 64 hexadecimal digits. Git only; a branch given as well has to hold it.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}|[0-9a-f]{64})?$`
	Commit string `json:"commit,omitempty"`
	// Digest of an OCI artifact (`sha256:…`).
	// +optional
	// +kubebuilder:validation:Pattern=`^(sha256:[0-9a-f]{64})?$`
	Digest string `json:"digest,omitempty"`
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
	// Secret, in the namespace of the Landscape, whose values are the public keys that are trusted: OpenPGP keys in armour, SSH
	// keys in the form of authorized_keys or of an allowed_signers file.
	SecretRef LocalSecretReference `json:"secretRef"`
}

// Decryption says which keys open SOPS-encrypted files.
type Decryption struct {
	// Secret, in the namespace of the Landscape, whose values are the private keys; age identities have keys that end
	// in `.agekey`.
	SecretRef LocalSecretReference `json:"secretRef"`
}

// Suspension says why syncing is paused.
type Suspension struct {
	// Reason for people.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// Time at which syncing goes on by itself. Unset: never.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Who paused it.
	// +optional
	By string `json:"by,omitempty"`
}

// Pin holds a landscape at one revision.
type Pin struct {
	// Commit, as 40 or 64 hexadecimal digits, or the digest of an OCI artifact.
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}|[0-9a-f]{64}|sha256:[0-9a-f]{64})$`
	Revision string `json:"revision"`
	// Reason for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// Who pinned it.
	// +optional
	By string `json:"by,omitempty"`
	// When it was pinned.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// SyncWindow is a time that comes again and again.
type SyncWindow struct {
	// When the window opens, in cron form: minute, hour, day of the month, month, day of the week.
	// +kubebuilder:validation:MinLength=1
	Schedule string `json:"schedule"`
	// How long it stays open.
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

// ReviewMode says whether deletions have to be foreseeable.
// +kubebuilder:validation:Enum=Optional;Required
type ReviewMode string

const (
	// ReviewOptional leaves deletions to the gate.
	ReviewOptional ReviewMode = "Optional"
	// ReviewRequired holds deletions and recreations that the rendered difference of the revisions does not have.
	ReviewRequired ReviewMode = "Required"
)

// ReceiverType is the form of the requests.
// +kubebuilder:validation:Enum=github;gitlab;gitea;forgejo;hmac
type ReceiverType string

// The forms of requests.
const (
	ReceiverGitHub  ReceiverType = "github"
	ReceiverGitLab  ReceiverType = "gitlab"
	ReceiverGitea   ReceiverType = "gitea"
	ReceiverForgejo ReceiverType = "forgejo"
	// ReceiverHMAC is any request whose header X-Signature holds `sha256=` and the HMAC of X-Timestamp, a dot and its body.
	ReceiverHMAC ReceiverType = "hmac"
)

// Receiver takes requests for a sync at /hooks/NAMESPACE/LANDSCAPE/NAME of the operator.
type Receiver struct {
	// Name, the last part of the path.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Form of the requests: `github`, `gitlab`, `gitea`, `forgejo` or `hmac` (also for the post-receive hook of a bare repository).
	Type ReceiverType `json:"type"`
	// Secret, in the namespace of the Landscape, whose key `token` is what the sender proves to know.
	SecretRef LocalSecretReference `json:"secretRef"`
}

// NotificationType is how somebody is told.
// +kubebuilder:validation:Enum=commitStatus;webhook
type NotificationType string

const (
	// NotifyCommitStatus writes a status at the commit, on the forge.
	NotifyCommitStatus NotificationType = "commitStatus"
	// NotifyWebhook sends a JSON object by HTTP POST.
	NotifyWebhook NotificationType = "webhook"
)

// Notification is somebody who is told what happens.
// +kubebuilder:validation:XValidation:rule="self.type != 'commitStatus' || has(self.provider)",message="a commit status needs the provider of the forge"
// +kubebuilder:validation:XValidation:rule="self.type != 'webhook' || has(self.url)",message="a webhook needs a url"
type Notification struct {
	// Name among the notifications of the Landscape.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// How: `commitStatus` or `webhook`.
	Type NotificationType `json:"type"`
	// Forge of a commit status.
	// +optional
	// +kubebuilder:validation:Enum=github;gitlab;gitea;forgejo
	Provider string `json:"provider,omitempty"`
	// Address of a webhook, or of the API of a forge. Unset: the forge at the host of `source.url`.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://.+$`
	URL string `json:"url,omitempty"`
	// Secret, in the namespace of the Landscape: `token` is the access of a commit status, or the key that webhooks are signed with;
	// `ca.crt` holds the certificates that are trusted.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// What is told by a webhook: all events, or only warnings. Default: `info`.
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
