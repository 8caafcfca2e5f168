// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Maintenance defines time and scope of automatic changes by Gardener.
type Maintenance struct {
	// Versions that are updated automatically.
	// +optional
	AutoUpdate *MaintenanceAutoUpdate `json:"autoUpdate,omitempty"`
	// Time of maintenance. Default: one hour, derived from namespace and name.
	// +optional
	TimeWindow *MaintenanceTimeWindow `json:"timeWindow,omitempty"`
	// True delays changes of the spec until the next time window, except changes of
	// `hibernation.enabled`. Default: false.
	// +optional
	ConfineSpecUpdateRollout *bool `json:"confineSpecUpdateRollout,omitempty"`
	// Credentials that are rotated automatically.
	// +optional
	AutoRotation *MaintenanceAutoRotation `json:"autoRotation,omitempty"`
}

// MaintenanceAutoUpdate selects the versions that are updated automatically.
type MaintenanceAutoUpdate struct {
	// Whether the Kubernetes patch version is updated. Default: true, or false if `autoUpdate` is
	// set without it.
	KubernetesVersion bool `json:"kubernetesVersion"`
	// Whether versions of machine images are updated. Default: true. Not for clusters without
	// workers.
	// +optional
	MachineImageVersion *bool `json:"machineImageVersion,omitempty"`
}

// MaintenanceTimeWindow is the time of day of maintenance: 30 minutes to 6 hours, possibly across
// midnight.
type MaintenanceTimeWindow struct {
	// Start, as `HHMMSS+ZZ00` or `HHMMSS-ZZ00`, for example `220000+0100`.
	// +kubebuilder:validation:Pattern=`^([0-1][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-][0-1][0-9][0-5][0-9]$`
	Begin string `json:"begin"`
	// End, in the same form.
	// +kubebuilder:validation:Pattern=`^([0-1][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-][0-1][0-9][0-5][0-9]$`
	End string `json:"end"`
}

// MaintenanceAutoRotation selects the credentials that are rotated automatically.
type MaintenanceAutoRotation struct {
	// Credentials that are rotated automatically, and the intervals.
	// +optional
	Credentials *MaintenanceCredentialsAutoRotation `json:"credentials,omitempty"`
}

// MaintenanceCredentialsAutoRotation selects the credentials that are rotated automatically, and
// the intervals.
type MaintenanceCredentialsAutoRotation struct {
	// Passwords of monitoring and logging.
	// +optional
	Observability *MaintenanceRotationConfig `json:"observability,omitempty"`
	// SSH key pair of the nodes.
	// +optional
	SSHKeypair *MaintenanceRotationConfig `json:"sshKeypair,omitempty"`
	// Key that encrypts data in etcd. New Shoots rotate it every 672h (28 days) by default.
	// +optional
	ETCDEncryptionKey *MaintenanceRotationConfig `json:"etcdEncryptionKey,omitempty"`
}

// MaintenanceRotationConfig is the interval at which credentials are rotated.
type MaintenanceRotationConfig struct {
	// Time between the end of a rotation and the start of the next; 30 minutes to 90 days, 0
	// disables the rotation. Default: 168h (7 days).
	// +optional
	// +kubebuilder:validation:Format=duration
	RotationPeriod *metav1.Duration `json:"rotationPeriod,omitempty"`
}
