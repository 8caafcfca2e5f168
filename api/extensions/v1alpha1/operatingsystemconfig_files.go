// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// UnitCommand is a command for a unit.
// +kubebuilder:validation:Enum=start;restart;stop
type UnitCommand string

const (
	// CommandStart starts a unit.
	CommandStart UnitCommand = "start"
	// CommandRestart restarts a unit.
	CommandRestart UnitCommand = "restart"
	// CommandStop stops a unit.
	CommandStop UnitCommand = "stop"
)

// Unit is a systemd unit.
type Unit struct {
	// Name of the unit, with suffix; unique within the list.
	Name string `json:"name"`
	// Command for the unit: `start`, `restart` or `stop`.
	// +optional
	Command *UnitCommand `json:"command,omitempty"`
	// Whether the unit starts at boot.
	// +optional
	Enable *bool `json:"enable,omitempty"`
	// Content of the unit file.
	// +optional
	Content *string `json:"content,omitempty"`
	// Drop-ins of the unit.
	// +optional
	// +listType=map
	// +listMapKey=name
	DropIns []DropIn `json:"dropIns,omitempty"`
	// Paths of files whose change restarts the unit. They must be files of the configuration.
	// +optional
	// +listType=atomic
	FilePaths []string `json:"filePaths,omitempty"`
}

// DropIn is a drop-in of a systemd unit.
type DropIn struct {
	// Name of the drop-in, with suffix; unique within the unit.
	Name string `json:"name"`
	// Content of the drop-in file.
	Content string `json:"content"`
}

// File is a file on the node.
type File struct {
	// Absolute path.
	Path string `json:"path"`
	// Permissions in decimal, so that octal 0644 is 420. Default: 0644.
	// +optional
	Permissions *uint32 `json:"permissions,omitempty"`
	// Source of the content. Exactly one.
	Content FileContent `json:"content"`
	// Name of the only host that gets the file. Unset: all hosts.
	// +optional
	HostName *string `json:"hostName,omitempty"`
}

// FileContent is the content of a file, or its source.
type FileContent struct {
	// Key of a Secret in the namespace of the object.
	// +optional
	SecretRef *FileContentSecretRef `json:"secretRef,omitempty"`
	// Literal content.
	// +optional
	Inline *FileContentInline `json:"inline,omitempty"`
	// True prevents the extension from encoding the content in the user data, so that placeholders
	// can be replaced.
	// +optional
	TransmitUnencoded *bool `json:"transmitUnencoded,omitempty"`
	// File of a container image.
	// +optional
	ImageRef *FileContentImageRef `json:"imageRef,omitempty"`
}

// FileContentSecretRef is a key of a Secret.
type FileContentSecretRef struct {
	// Name of the Secret.
	Name string `json:"name"`
	// Key within the Secret.
	DataKey string `json:"dataKey"`
}

// FileContentInline is literal content.
type FileContentInline struct {
	// Encoding of the data: empty for plain text, `b64` for base64.
	Encoding string `json:"encoding"`
	// Encoded content.
	Data string `json:"data" pergola:"sensitive"`
}

// FileContentImageRef is a file of a container image.
type FileContentImageRef struct {
	// Image with tag or digest.
	Image string `json:"image"`
	// Path of the file within the image.
	FilePathInImage string `json:"filePathInImage"`
}

// CRIConfig is the configuration of the container runtime.
type CRIConfig struct {
	// Name of the container runtime, `containerd`.
	Name gardencorev1beta1.CRIName `json:"name"`
	// Cgroup driver; must be the kubelet's.
	// +optional
	CgroupDriver *CgroupDriverName `json:"cgroupDriver,omitempty"`
	// Configuration of containerd.
	// +optional
	Containerd *ContainerdConfig `json:"containerd,omitempty"`
}

// CgroupDriverName names a cgroup driver.
// +kubebuilder:validation:Enum=cgroupfs;systemd
type CgroupDriverName string

const (
	// CgroupDriverCgroupfs writes the cgroup file system directly.
	CgroupDriverCgroupfs CgroupDriverName = "cgroupfs"
	// CgroupDriverSystemd leaves cgroups to systemd.
	CgroupDriverSystemd CgroupDriverName = "systemd"
)

// ContainerdConfig is the configuration of containerd.
type ContainerdConfig struct {
	// Registry mirrors and their settings.
	// +optional
	// +listType=atomic
	Registries []RegistryConfig `json:"registries,omitempty"`
	// Image of the pause container.
	SandboxImage string `json:"sandboxImage"`
	// Settings of plugins.
	// +optional
	// +listType=atomic
	Plugins []PluginConfig `json:"plugins,omitempty"`
}

// PluginPathOperation is an operation on a path of containerd's configuration.
// +kubebuilder:validation:Enum=add;remove
type PluginPathOperation string

const (
	// AddPluginPathOperation adds values.
	AddPluginPathOperation PluginPathOperation = "add"
	// RemovePluginPathOperation removes the path.
	RemovePluginPathOperation PluginPathOperation = "remove"
)

// PluginConfig is a change to the plugin section of containerd's configuration.
type PluginConfig struct {
	// Operation: `add` or `remove`. Default: `add`.
	// +optional
	Op *PluginPathOperation `json:"op,omitempty"`
	// Path within the plugin section.
	// +listType=atomic
	Path []string `json:"path"`
	// Values to add.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

// RegistryConfig is the configuration of one upstream registry.
type RegistryConfig struct {
	// Upstream registry, for example `docker.io`.
	Upstream string `json:"upstream"`
	// URL of the upstream registry. Default: `https://<upstream>`.
	// +optional
	Server *string `json:"server,omitempty"`
	// Hosts that are tried before the upstream, in order.
	// +listType=atomic
	Hosts []RegistryHost `json:"hosts"`
	// True waits until the hosts are reachable before they are configured. Default: false.
	// +optional
	ReadinessProbe *bool `json:"readinessProbe,omitempty"`
}

// RegistryCapability is a capability of a registry host.
// +kubebuilder:validation:Enum=pull;resolve;push
type RegistryCapability string

const (
	// PullCapability is for reading manifests and blobs by digest.
	PullCapability RegistryCapability = "pull"
	// ResolveCapability is for turning a tag into a digest.
	ResolveCapability RegistryCapability = "resolve"
	// PushCapability is for writing.
	PushCapability RegistryCapability = "push"
)

// RegistryHost is a host that serves images of an upstream registry.
type RegistryHost struct {
	// URL of the host, with scheme.
	URL string `json:"url"`
	// Capabilities of the host. Default: `pull` and `resolve`.
	// +optional
	// +listType=atomic
	Capabilities []RegistryCapability `json:"capabilities,omitempty"`
	// Paths of CA bundles on the node that verify the host.
	// +optional
	// +listType=atomic
	CACerts []string `json:"caCerts,omitempty"`
	// True if the URL already contains the path of the API.
	// +optional
	OverridePath *bool `json:"overridePath,omitempty"`
}
