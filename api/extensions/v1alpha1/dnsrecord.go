// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=dnsrecords,shortName=dns,singular=dnsrecord
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="Type of the extension."
// +kubebuilder:printcolumn:name="Domain Name",type=string,JSONPath=`.spec.name`,description="Name of the record."
// +kubebuilder:printcolumn:name="Record Type",type=string,JSONPath=`.spec.recordType`,description="Type of the record."
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// DNSRecord requests one DNS record set.
type DNSRecord struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the object. Immutable once the object is being deleted.
	Spec DNSRecordSpec `json:"spec"`
	// Observed state of the object. Set by the extension.
	// +optional
	Status DNSRecordStatus `json:"status,omitempty"`
}

// GetDefaultSpec returns the part of the spec that all extension kinds share.
func (o *DNSRecord) GetDefaultSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetDefaultStatus returns the part of the status that all extension kinds share.
func (o *DNSRecord) GetDefaultStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// +kubebuilder:object:root=true

// DNSRecordList is a list of dnsrecords.
type DNSRecordList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []DNSRecord `json:"items"`
}

// DNSRecordType is the type of a DNS record.
// +kubebuilder:validation:Enum=A;AAAA;CNAME;TXT
type DNSRecordType string

const (
	// DNSRecordTypeA is a record with IPv4 addresses.
	DNSRecordTypeA DNSRecordType = "A"
	// DNSRecordTypeAAAA is a record with IPv6 addresses.
	DNSRecordTypeAAAA DNSRecordType = "AAAA"
	// DNSRecordTypeCNAME is an alias of one other name.
	DNSRecordTypeCNAME DNSRecordType = "CNAME"
	// DNSRecordTypeTXT is a record with texts.
	DNSRecordTypeTXT DNSRecordType = "TXT"
)

// DNSRecordSpec is the desired state of a DNSRecord.
type DNSRecordSpec struct {
	DefaultSpec `json:",inline"`
	// Secret with the credentials for the DNS service.
	SecretRef corev1.SecretReference `json:"secretRef"`
	// Region of the DNS service, for providers that have regions.
	// +optional
	Region *string `json:"region,omitempty"`
	// Hosted zone. Unset: the extension finds it by the name.
	// +optional
	Zone *string `json:"zone,omitempty"`
	// Fully qualified name without trailing dot; may begin with `*.`. Immutable.
	Name string `json:"name"`
	// Type of the record: `A`, `AAAA`, `CNAME` or `TXT`. Immutable.
	RecordType DNSRecordType `json:"recordType"`
	// Values of the record: addresses, one name, or texts.
	// +listType=atomic
	Values []string `json:"values"`
	// Time for which resolvers may cache the record, in seconds. Default: 120, by the extension.
	// +optional
	TTL *int64 `json:"ttl,omitempty"`
}

// DNSRecordStatus is the observed state of a DNSRecord.
type DNSRecordStatus struct {
	DefaultStatus `json:",inline"`
	// Hosted zone that the record is in.
	// +optional
	Zone *string `json:"zone,omitempty"`
}
