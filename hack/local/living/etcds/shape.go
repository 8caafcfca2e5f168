package etcds

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
)

// What the StatefulSet remembers of the cluster that it runs.
const (
	foundersMark = "local.pergola.dev/founders"
	votersMark   = "local.pergola.dev/voters"
)

// shape is how many members a cluster has. Members are counted from the first, as Pods are.
type shape struct {
	// Founders started with each other; 0 as long as none ever did.
	Founders int32
	// Voters are members for good: the founders, and those that have joined since.
	Voters int32
	// Run is how many Pods there are: one more than voters while a member joins.
	Run int32
}

func (s shape) annotations() map[string]string {
	return map[string]string{
		foundersMark: strconv.Itoa(int(s.Founders)), votersMark: strconv.Itoa(int(s.Voters)),
	}
}

// shapeOf is the shape that the cluster is to have now, on its way to the replicas that are
// declared.
func shapeOf(live *appsv1.StatefulSet, replicas int32) shape {
	var s shape
	running := int32(0)
	if live != nil {
		s.Founders, s.Voters = number(live, foundersMark), number(live, votersMark)
		if live.Spec.Replicas != nil {
			running = *live.Spec.Replicas
		}
	}
	if s.Founders == 0 {
		s.Founders, s.Voters = replicas, replicas
	}
	s.Voters = max(s.Voters, s.Founders)
	s.Run = min(replicas, s.Voters)
	if replicas > s.Voters && running == s.Voters+1 {
		s.Run = running
	}
	return s
}

func number(set *appsv1.StatefulSet, mark string) int32 {
	n, err := strconv.ParseInt(set.Annotations[mark], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}

// rolledOut says whether all Pods are as the StatefulSet has them now, and so many of them ready.
func rolledOut(set *appsv1.StatefulSet, ready int32) bool {
	s := set.Status
	return s.ObservedGeneration >= set.Generation && s.CurrentRevision == s.UpdateRevision && s.ReadyReplicas >= ready
}
