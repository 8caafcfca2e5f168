// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

const (
	ruleOperationObject  = "landscape/operation-object"
	ruleOperationChanged = "landscape/operation-changed"
	ruleOperationOrder   = "landscape/operation-order"
)

// checkOperations checks new and changed operations against declared objects, by the rules for the
// annotation. Without before, new operations are unknown. Expired operations are skipped, because
// they never run.
func (l *Landscape) checkOperations(now time.Time, before *Landscape) ([]schemas.Violation, error) {
	var out []schemas.Violation
	var judge *schemas.OperationChecker
	fresh := l.newOperations(before)
	for i, o := range fresh {
		add := func(at schemas.Position, field string, typ schemas.ViolationType, rule, message string) {
			out = append(out, schemas.Violation{
				Severity: schemas.SeverityError, File: o.File, Line: at.Line, Column: at.Column, Kind: KindOperation, Name: o.ID,
				Field: field, Type: typ, Rule: rule, Message: message, NewOnly: true,
			})
		}
		if o.IsExpired(now) {
			continue
		}
		if problem := operationConflict(o, fresh[:i], now); problem != "" && before != nil {
			add(o.OperationPosition, "spec.operation", schemas.TypeForbidden, ruleOperationOrder, problem)
			out[len(out)-1].Severity = schemas.SeverityWarning
		}
		if was := before.operationByID(o.ID); was != nil {
			add(o.OperationPosition, "spec.operation", schemas.TypeForbidden, ruleOperationChanged,
				fmt.Sprintf("the id %s already belongs to %s of %s, which runs only once; restore that file, and give this one another id", o.ID, was.Operation, was.Object()))
			// The operator refuses only this operation and applies the rest of the commit.
			out[len(out)-1].Severity = schemas.SeverityWarning
			continue
		}
		declared := l.operationTarget(o)
		if declared == nil {
			if !l.Incomplete && !l.isExternal(o) && (before == nil || before.operationTarget(o) == nil) {
				add(o.ObjectPosition, "spec.object", schemas.TypeInvalid, ruleOperationObject, l.undeclaredMessage(o))
			}
			continue
		}
		if judge == nil {
			var err error
			if judge, err = schemas.NewOperationChecker(); err != nil {
				return nil, err
			}
		}
		found, err := judge.Findings(declared.Object(), o.Operation)
		if err != nil {
			return nil, fmt.Errorf("checking the operation %s: %w", o.ID, err)
		}
		for _, v := range found {
			add(o.OperationPosition, "spec.operation", v.Type, v.Rule, v.Message+fmt.Sprintf(" (%s is declared in %s:%d)", o.Object(), declared.File, declared.Line))
		}
	}
	return out, nil
}

// operationConflict says why an operation conflicts with another new one on the same object, or
// returns "". The second phase of a rotation has to wait for the first one, which takes hours.
func operationConflict(o Operation, others []Operation, now time.Time) string {
	for _, other := range others {
		if other.Object() != o.Object() || other.IsExpired(now) {
			continue
		}
		if other.Operation == o.Operation {
			return fmt.Sprintf("%s of %s is already requested by %s, in the same commit; remove one of them", o.Operation, o.Object(), other.File)
		}
		for first := range strings.SplitSeq(other.Operation, ";") {
			for second := range strings.SplitSeq(o.Operation, ";") {
				if begins, completes, both := rotationPhases(first, second); both {
					return fmt.Sprintf("%s is rejected until %s is prepared in the status of the %s, but the same commit requests both (%s); commit it then", completes, begins, o.Kind, other.File)
				}
			}
		}
	}
	return ""
}

// rotationPhases reports whether two operations begin and complete the same rotation, in either
// order.
func rotationPhases(a, b string) (begins, completes string, both bool) {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		of, begins := strings.CutSuffix(strings.TrimSuffix(pair[0], withoutRolloutSuffix), "-start")
		ends, completes := strings.CutSuffix(pair[1], "-complete")
		if begins && completes && (of == ends || ends == operationRotateAll || of == operationRotateAll) {
			return pair[0], pair[1], true
		}
	}
	return "", "", false
}

// Parts of the names of operations (upstream: pkg/apis/core/v1beta1/constants).
const (
	operationRotateAll   = "rotate-credentials"
	withoutRolloutSuffix = "-without-workers-rollout"
)

// operationByID returns the operation with an id, or nil.
func (l *Landscape) operationByID(id string) *Operation {
	if l == nil {
		return nil
	}
	for i := range l.Operations {
		if l.Operations[i].ID == id {
			return &l.Operations[i]
		}
	}
	return nil
}

// operationTarget returns the declaration that an operation is for, or nil.
func (l *Landscape) operationTarget(o Operation) *Declaration {
	for i := range l.Declarations {
		if d := &l.Declarations[i]; d.kind.Kind == o.Kind && d.namespace == o.Namespace && d.name == o.Name {
			return d
		}
	}
	return nil
}

// isExternal reports whether the object comes from another source: an external tool, a gardenlet
// that registers its Seed, or a ManagedSeedSet.
func (l *Landscape) isExternal(o Operation) bool {
	if slices.ContainsFunc(l.Config.Spec.External, func(e landscapev1alpha1.ExternalObject) bool {
		return crosscheck.External(e).Matches(o.Kind, o.Namespace, o.Name)
	}) {
		return true
	}
	return slices.ContainsFunc(l.Declarations, func(d Declaration) bool {
		switch d.kind.Kind {
		case "Gardenlet", "ManagedSeed":
			return o.Kind == "Seed" && d.name == o.Name
		case "ManagedSeedSet":
			return slices.Contains([]string{"ManagedSeed", "Seed", "Shoot"}, o.Kind) && strings.HasPrefix(o.Name, d.name+"-")
		}
		return false
	})
}

// undeclaredMessage describes a missing object and suggests another one.
func (l *Landscape) undeclaredMessage(o Operation) string {
	var names []string
	for i := range l.Declarations {
		if d := &l.Declarations[i]; d.kind.Kind == o.Kind {
			names = append(names, Operation{Kind: o.Kind, Namespace: d.namespace, Name: d.name}.Object())
		}
	}
	slices.Sort(names)
	const most = 8
	hint := fmt.Sprintf("the landscape declares no %s", o.Kind)
	if guess := suggest.Closest(o.Object(), names); guess != "" {
		hint = fmt.Sprintf("did you mean %q", guess)
	} else if len(names) > most {
		hint = fmt.Sprintf("the landscape declares %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	} else if len(names) > 0 {
		hint = "the landscape declares " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s is not declared in this landscape; %s; list an object that is made elsewhere in landscape.yaml under spec.external", o.Object(), hint)
}
