// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problems splits a joined error into one line for each error, each with its prefix. Consequences
// of other errors come last: skipped objects, blocked steps, further requests to an unreachable
// cluster.
func Problems(err error) []string {
	var causes, effects []string
	down := map[string]bool{}
	for _, p := range splitError(err) {
		switch {
		case p.unreachableCluster != "" && down[p.unreachableCluster]:
			if !slices.Contains(effects, p.shortText) && !slices.Contains(causes, p.text) {
				effects = append(effects, p.shortText)
			}
			continue
		case slices.Contains(causes, p.text) || slices.Contains(effects, p.text):
		case p.isConsequence:
			effects = append(effects, p.text)
		default:
			causes = append(causes, p.text)
		}
		down[p.unreachableCluster] = true
	}
	return append(causes, effects...)
}

// Failures returns the problems of err that are neither consequences of others nor caused by an
// interruption.
func Failures(err error) []string {
	var out []string
	for _, p := range splitError(err) {
		if !p.interrupted && !p.isConsequence && !slices.Contains(out, p.text) {
			out = append(out, p.text)
		}
	}
	return out
}

// FollowsError marks an error that is only the consequence of another one.
type FollowsError struct{ Err error }

func (e *FollowsError) Error() string { return e.Err.Error() }
func (e *FollowsError) Unwrap() error { return e.Err }

type problem struct {
	text          string
	isConsequence bool
	// interrupted means that someone stopped the work.
	interrupted bool
	// unreachableCluster is the unreachable cluster, if any; shortText is the text to show
	// after another error has the cause.
	unreachableCluster, shortText string
}

func splitError(err error) []problem {
	if err == nil {
		return nil
	}
	// Check err itself: an error that wraps an ObjectError is not a leaf.
	if object, ok := err.(*ObjectError); ok {
		out := problem{text: oneLine(object.Error()), isConsequence: object.Reason == ReasonSkippedDependency, interrupted: object.Reason == ReasonCanceled}
		if unreachable, is := errors.AsType[*UnreachableError](object.Err); is && object.Reason == ReasonUnreachable {
			again := *object
			out.unreachableCluster = unreachable.Root().Cluster
			again.Message, again.Hint = fmt.Sprintf("cluster %s does not answer, as above", out.unreachableCluster), ""
			out.shortText = oneLine(again.Error())
		}
		return []problem{out}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []problem
		for _, e := range joined.Unwrap() {
			out = append(out, splitError(e)...)
		}
		if len(out) > 0 {
			return out
		}
	}
	inner := errors.Unwrap(err)
	if inner == nil {
		return []problem{{text: oneLine(err.Error()), interrupted: errors.Is(err, context.Canceled)}}
	}
	parts := splitError(inner)
	before, isPrefix := strings.CutSuffix(err.Error(), inner.Error())
	follows := errors.As(err, new(*FollowsError))
	if !isPrefix {
		return []problem{{text: oneLine(err.Error()), isConsequence: follows, interrupted: !slices.ContainsFunc(parts, func(p problem) bool { return !p.interrupted })}}
	}
	for i := range parts {
		parts[i].text, parts[i].shortText = oneLine(before+parts[i].text), oneLine(before+parts[i].shortText)
		parts[i].isConsequence = parts[i].isConsequence || follows
	}
	return parts
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
