package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Maintenance says when, and what, Gardener may change by itself.
type Maintenance struct {
	// Which versions are raised automatically.
	// +optional
	AutoUpdate *MaintenanceAutoUpdate `json:"autoUpdate,omitempty"`
	// When maintenance takes place. Default: one hour, at an hour chosen at random once.
	// +optional
	TimeWindow *MaintenanceTimeWindow `json:"timeWindow,omitempty"`
	// True holds back changes of the spec until the next time window, except those of `hibernation.enabled`.
	// Default: false.
	// +optional
	ConfineSpecUpdateRollout *bool `json:"confineSpecUpdateRollout,omitempty"`
	// Which credentials are rotated automatically.
	// +optional
	AutoRotation *MaintenanceAutoRotation `json:"autoRotation,omitempty"`
}

// MaintenanceAutoUpdate says which versions are raised automatically.
type MaintenanceAutoUpdate struct {
	// Whether the Kubernetes patch version is raised. Default: true, but false if `autoUpdate` is given without it.
	KubernetesVersion bool `json:"kubernetesVersion"`
	// Whether versions of machine images are raised. Default: true. Not for clusters without workers.
	// +optional
	MachineImageVersion *bool `json:"machineImageVersion,omitempty"`
}

// MaintenanceTimeWindow is the time of day at which maintenance takes place: 30 minutes to 6 hours; may cross midnight.
type MaintenanceTimeWindow struct {
	// Begin, as `HHMMSS+ZZ00` or `HHMMSS-ZZ00`, for example `220000+0100`.
	// +kubebuilder:validation:Pattern=`^([0-1][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-][0-1][0-9][0-5][0-9]$`
	Begin string `json:"begin"`
	// End, in the same form.
	// +kubebuilder:validation:Pattern=`^([0-1][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-][0-1][0-9][0-5][0-9]$`
	End string `json:"end"`
}

// MaintenanceAutoRotation says which credentials are rotated automatically.
type MaintenanceAutoRotation struct {
	// Which credentials are rotated automatically, and how often.
	// +optional
	Credentials *MaintenanceCredentialsAutoRotation `json:"credentials,omitempty"`
}

// MaintenanceCredentialsAutoRotation says which credentials are rotated automatically, and how often.
type MaintenanceCredentialsAutoRotation struct {
	// Passwords of monitoring and logging.
	// +optional
	Observability *MaintenanceRotationConfig `json:"observability,omitempty"`
	// SSH key pair of the nodes.
	// +optional
	SSHKeypair *MaintenanceRotationConfig `json:"sshKeypair,omitempty"`
	// Key that encrypts data in etcd. New Shoots rotate it every 672h (28 days) unless they say otherwise.
	// +optional
	ETCDEncryptionKey *MaintenanceRotationConfig `json:"etcdEncryptionKey,omitempty"`
}

// MaintenanceRotationConfig says how often credentials are rotated.
type MaintenanceRotationConfig struct {
	// Time between the end of a rotation and the next one; 30 minutes to 90 days, 0 switches the rotation off.
	// Default: 168h (7 days).
	// +optional
	// +kubebuilder:validation:Format=duration
	RotationPeriod *metav1.Duration `json:"rotationPeriod,omitempty"`
}
