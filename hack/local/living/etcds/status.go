// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

type status struct {
	ObservedGeneration *int64                `json:"observedGeneration,omitempty"`
	Ready              *bool                 `json:"ready,omitempty"`
	Replicas           int32                 `json:"replicas"`
	CurrentReplicas    int32                 `json:"currentReplicas"`
	ReadyReplicas      int32                 `json:"readyReplicas"`
	Selector           string                `json:"selector,omitempty"`
	LabelSelector      *metav1.LabelSelector `json:"labelSelector,omitempty"`
	Etcd               *reference            `json:"etcd,omitempty"`
	PeerURLTLSEnabled  *bool                 `json:"peerUrlTLSEnabled,omitempty"`
	Conditions         []condition           `json:"conditions"`
	// LastErrors is null in a patch without errors, which deletes old errors.
	LastErrors    []lastError    `json:"lastErrors"`
	LastOperation *lastOperation `json:"lastOperation,omitempty"`
}

type reference struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

type condition struct {
	Type               string      `json:"type"`
	Status             string      `json:"status"`
	Reason             string      `json:"reason"`
	Message            string      `json:"message"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	LastUpdateTime     metav1.Time `json:"lastUpdateTime"`
}

type lastError struct {
	Code        string      `json:"code"`
	Description string      `json:"description"`
	ObservedAt  metav1.Time `json:"observedAt"`
}

type lastOperation struct {
	Type           string      `json:"type"`
	State          string      `json:"state"`
	Description    string      `json:"description"`
	RunID          string      `json:"runID"`
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
}

// reconcileResult is the result of reconciling an Etcd once.
type reconcileResult struct {
	isSpecAccepted bool                // the spec runs, or is to run
	statefulSet    *appsv1.StatefulSet // nil if there is none
	shape          shape
	errorCode      string // error code for trouble
	message        string
	isFailing      bool // requested by annotation
}

const (
	statusTrue, statusFalse, statusUnknown = "True", "False", "Unknown"
	codeLocal                              = "ERR_LOCAL_FAILURE"
)

// nextStatus returns the status after an outcome. Times change only with their conditions.
func (e *etcd) nextStatus(o reconcileResult, now time.Time) status {
	s := e.Status
	created := s.ObservedGeneration == nil || s.LastOperation != nil && s.LastOperation.Type == "Create" && *s.ObservedGeneration == e.Generation
	if o.isSpecAccepted {
		s.ObservedGeneration = new(e.Generation)
	}
	s.Selector = labels.SelectorFromSet(e.selector()).String()
	s.LabelSelector = &metav1.LabelSelector{MatchLabels: e.selector()}
	s.PeerURLTLSEnabled = new(e.Spec.Etcd.PeerURLTLS != nil)
	s.Replicas, s.CurrentReplicas, s.ReadyReplicas, s.Etcd = 0, 0, 0, nil
	if o.statefulSet != nil {
		s.Etcd = &reference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: o.statefulSet.Name}
		s.Replicas, s.CurrentReplicas, s.ReadyReplicas = o.statefulSet.Status.Replicas, o.statefulSet.Status.CurrentReplicas, o.statefulSet.Status.ReadyReplicas
	}
	updated := o.statefulSet != nil && o.statefulSet.Spec.Replicas != nil && *o.statefulSet.Spec.Replicas == e.Spec.Replicas &&
		o.shape.Voters >= e.Spec.Replicas && isRolledOut(o.statefulSet, 0)
	ready := !o.isFailing && updated && s.ReadyReplicas == e.Spec.Replicas
	s.Ready = &ready
	s.Conditions = e.conditions(o, updated, now)
	s.LastErrors = nil
	if o.message != "" {
		s.LastErrors = []lastError{{Code: o.errorCode, Description: o.message, ObservedAt: metav1.NewTime(now)}}
	}
	kind := "Reconcile"
	switch {
	case e.DeletionTimestamp != nil:
		kind = "Delete"
	case created:
		kind = "Create"
	}
	state, description := "Succeeded", "Etcd cluster is run by the local cluster"
	switch {
	case o.message != "":
		state, description = "Error", o.message
	case e.DeletionTimestamp != nil:
		state, description = "Processing", "Etcd cluster is being deleted"
	case o.shape.Pods < e.Spec.Replicas || o.shape.Voters < e.Spec.Replicas:
		state, description = "Processing", fmt.Sprintf("Member %d of %d is joining", o.shape.Voters+1, e.Spec.Replicas)
	}
	s.LastOperation = &lastOperation{Type: kind, State: state, Description: description, RunID: string(e.UID), LastUpdateTime: metav1.NewTime(now)}
	return s.copyTimes(e.Status)
}

// conditions returns etcd-druid's conditions, which Gardener's health checks read.
func (e *etcd) conditions(o reconcileResult, updated bool, now time.Time) []condition {
	var ready int32
	if o.statefulSet != nil {
		ready = o.statefulSet.Status.ReadyReplicas
	}
	declared := e.Spec.Replicas
	members := fmt.Sprintf("%d of %d members are ready", ready, declared)
	all := []condition{
		newCondition("Ready", ready >= declared/2+1, "Quorate", "QuorumLost", members),
		newCondition("AllMembersReady", ready >= declared, "AllMembersReady", "NotAllMembersReady", members),
		newCondition("AllMembersUpdated", updated, "AllMembersUpdated", "NotAllMembersUpdated", "Members match their StatefulSet"),
		newCondition("BackupReady", true, "BackupSucceeded", "", "No backups are made in a local cluster"),
		newCondition("DataVolumesReady", true, "NoPVCWarningsFound", "", "Volumes are folders of this machine"),
	}
	if !updated {
		all[2].Message = "Not all members match their declaration"
	}
	for i := range all {
		c := &all[i]
		switch {
		case o.isFailing:
			c.Status, c.Reason, c.Message = statusFalse, "MadeToFail", o.message
		case declared == 0 && c.Type != "AllMembersUpdated":
			c.Status, c.Reason, c.Message = statusUnknown, "NotChecked", "etcd cluster has been scaled down to zero"
		}
		c.LastTransitionTime, c.LastUpdateTime = metav1.NewTime(now), metav1.NewTime(now)
	}
	return all
}

func newCondition(kind string, well bool, good, bad, message string) condition {
	if well {
		return condition{Type: kind, Status: statusTrue, Reason: good, Message: message}
	}
	return condition{Type: kind, Status: statusFalse, Reason: bad, Message: message}
}

// copyTimes copies the times of unchanged conditions.
func (s status) copyTimes(before status) status {
	for i, c := range s.Conditions {
		for _, was := range before.Conditions {
			if was.Type == c.Type && was.Status == c.Status {
				s.Conditions[i].LastTransitionTime = was.LastTransitionTime
				if was.Reason == c.Reason && was.Message == c.Message {
					s.Conditions[i].LastUpdateTime = was.LastUpdateTime
				}
			}
		}
	}
	if len(before.LastErrors) == 1 && len(s.LastErrors) == 1 && before.LastErrors[0].Description == s.LastErrors[0].Description {
		s.LastErrors[0].ObservedAt = before.LastErrors[0].ObservedAt
	}
	if was, is := before.LastOperation, s.LastOperation; was != nil && was.Type == is.Type && was.State == is.State && was.Description == is.Description {
		is.LastUpdateTime = was.LastUpdateTime
	}
	return s
}

// statusPatch returns the merge patch between two statuses, or nil if they are equal.
func statusPatch(before, after status) ([]byte, error) {
	was, err := json.Marshal(before)
	if err != nil {
		return nil, fmt.Errorf("writing status: %w", err)
	}
	is, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("writing status: %w", err)
	}
	if reflect.DeepEqual(was, is) {
		return nil, nil
	}
	return json.Marshal(map[string]json.RawMessage{"status": is})
}
