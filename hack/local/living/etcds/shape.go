// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
)

// Annotations of the StatefulSet that store the shape of its cluster.
const (
	foundersAnnotation = "local.pergola.dev/founders"
	votersAnnotation   = "local.pergola.dev/voters"
)

// shape has the member counts of a cluster. Members are numbered like Pods, from the first.
type shape struct {
	// Founders are the members that started together; 0 before the first start.
	Founders int32
	// Voters are the permanent members: the founders, and learners that were promoted.
	Voters int32
	// Pods is the number of Pods: one more than Voters while a member joins.
	Pods int32
}

func (s shape) annotations() map[string]string {
	return map[string]string{
		foundersAnnotation: strconv.Itoa(int(s.Founders)), votersAnnotation: strconv.Itoa(int(s.Voters)),
	}
}

// shapeOf returns the next shape of the cluster on its way to the declared replicas.
func shapeOf(live *appsv1.StatefulSet, replicas int32) shape {
	var s shape
	running := int32(0)
	if live != nil {
		s.Founders, s.Voters = annotationNumber(live, foundersAnnotation), annotationNumber(live, votersAnnotation)
		if live.Spec.Replicas != nil {
			running = *live.Spec.Replicas
		}
	}
	if s.Founders == 0 {
		s.Founders, s.Voters = replicas, replicas
	}
	s.Voters = max(s.Voters, s.Founders)
	s.Pods = min(replicas, s.Voters)
	if replicas > s.Voters && running == s.Voters+1 {
		s.Pods = running
	}
	return s
}

func annotationNumber(set *appsv1.StatefulSet, mark string) int32 {
	n, err := strconv.ParseInt(set.Annotations[mark], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}

// isRolledOut reports whether all Pods match the StatefulSet and at least ready of them are ready.
func isRolledOut(set *appsv1.StatefulSet, ready int32) bool {
	s := set.Status
	return s.ObservedGeneration >= set.Generation && s.CurrentRevision == s.UpdateRevision && s.ReadyReplicas >= ready
}
