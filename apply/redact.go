// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// withoutValues replaces the text of a server's answer about a Secret: validation, decoding and
// webhooks may repeat values in it. Reason, fields, managers and the webhook's name stay. Causes
// lose their text, except the words that identify an immutable field.
func withoutValues(err error) error {
	status, ok := statusOf(err)
	if !ok {
		var down *UnreachableError
		if errors.As(err, &down) || errors.Is(err, errWithoutValues) || isContextError(err) {
			return err
		}
		return fmt.Errorf("the request failed (text withheld, because the object is a Secret): %T", err)
	}
	safe := metav1.Status{Status: status.Status, Code: status.Code, Reason: status.Reason}
	text := "the server answered " + cmp.Or(string(status.Reason), strconv.Itoa(int(status.Code)))
	if m := webhookPattern.FindString(status.Message); m != "" {
		text = m
	}
	if status.Details != nil {
		safe.Details = &metav1.StatusDetails{Name: status.Details.Name, Group: status.Details.Group,
			Kind: status.Details.Kind, UID: status.Details.UID, RetryAfterSeconds: status.Details.RetryAfterSeconds}
		var fields []string
		for _, cause := range status.Details.Causes {
			safe.Details.Causes = append(safe.Details.Causes, valueFreeCause(cause))
			if cause.Field != "" {
				fields = append(fields, cause.Field)
			}
		}
		if len(fields) > 0 {
			text += " for " + strings.Join(fields, ", ")
		}
	}
	// The text of ReasonForbidden and ReasonNotFound comes from the authorizer and the router,
	// which see no body.
	if forbiddenByRBACPattern.MatchString(status.Message) || apierrors.IsNotFound(err) {
		safe.Message = status.Message
		return &apierrors.StatusError{ErrStatus: safe}
	}
	safe.Message = text + " (text withheld, because the object is a Secret)"
	return &apierrors.StatusError{ErrStatus: safe}
}

func valueFreeCause(c metav1.StatusCause) metav1.StatusCause {
	out := metav1.StatusCause{Type: c.Type, Field: c.Field, Message: "text withheld"}
	switch {
	case c.Type == metav1.CauseTypeFieldManagerConflict:
		out.Message = managerPattern.FindString(c.Message)
	case immutablePattern.MatchString(c.Message):
		out.Message = "field is immutable"
	}
	return out
}

// errWithoutValues marks our own errors, whose text contains no value.
var errWithoutValues = errors.New("")

type valueFreeError struct{ text string }

func (e valueFreeError) Error() string        { return e.text }
func (e valueFreeError) Is(target error) bool { return target == errWithoutValues }

func valueFreeErrorf(format string, args ...any) error {
	return valueFreeError{fmt.Sprintf(format, args...)}
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
