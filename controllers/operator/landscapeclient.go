// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/source/receiver"
)

// LandscapeClient performs people's actions on a Landscape in a cluster. Each method changes only
// its own fields, and does not overwrite concurrent changes.
type LandscapeClient struct {
	client client.Client
	key    receiver.Key
	clock  clock.WithTicker
	// user is the person's name.
	user string
}

// NewLandscapeClient returns the handle of a Landscape. It makes no request.
func NewLandscapeClient(config *rest.Config, key receiver.Key, clk clock.WithTicker, by string) (*LandscapeClient, error) {
	scheme := runtime.NewScheme()
	if err := landscapev1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client for Landscapes: %w", err)
	}
	return &LandscapeClient{client: c, key: key, clock: clk, user: by}, nil
}

// NoLandscapeError means that the object does not exist. It lists the existing ones.
type NoLandscapeError struct {
	Key   receiver.Key
	Known []string
}

func (e *NoLandscapeError) Error() string {
	text := fmt.Sprintf("Landscape %s does not exist", e.Key)
	if len(e.Known) > 0 {
		text += "; existing Landscapes: " + strings.Join(e.Known, ", ")
	}
	return text
}

// Get reads the Landscape.
func (h *LandscapeClient) Get(ctx context.Context) (*landscapev1alpha1.Landscape, error) {
	l := &landscapev1alpha1.Landscape{}
	err := h.client.Get(ctx, h.key, l)
	switch {
	case meta.IsNoMatchError(err):
		return nil, errors.New("the cluster has no CustomResourceDefinition of Landscapes: use the runtime cluster, or run pergola install")
	case apierrors.IsNotFound(err):
		list := &landscapev1alpha1.LandscapeList{}
		missing := &NoLandscapeError{Key: h.key}
		if h.client.List(ctx, list) == nil {
			for _, other := range list.Items {
				missing.Known = append(missing.Known, client.ObjectKeyFromObject(&other).String())
			}
		}
		return nil, missing
	case err != nil:
		return nil, fmt.Errorf("reading Landscape %s: %w", h.key, err)
	}
	return l, nil
}

// patchLandscape patches the object with optimistic locking, because patches replace whole lists
// and the pair of person and reason. After a conflict it reads the object and calls the function
// once more.
func (h *LandscapeClient) patchLandscape(ctx context.Context, what string, change func(*landscapev1alpha1.Landscape) error) (l *landscapev1alpha1.Landscape, err error) {
	err = retry.RetryOnConflict(conflictBackoff, func() error {
		if l, err = h.Get(ctx); err != nil {
			return err
		}
		before := l.DeepCopy()
		if err := change(l); err != nil {
			return err
		}
		if err := h.client.Patch(ctx, l, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("%s Landscape %s: %w", what, h.key, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// conflictBackoff is the backoff for conflicts with people and with the operator, whose status is
// in the same object.
var conflictBackoff = apiwait.Backoff{Steps: 25, Duration: 10 * time.Millisecond, Factor: 1.2, Jitter: 1}

// StaleOperator returns why no operator would act on the object, or nil if one runs.
func (h *LandscapeClient) StaleOperator(ctx context.Context) (*landscape.StaleRole, error) {
	return landscape.StaleOperator(ctx, h.getLease, h.clock.Now())
}

func (h *LandscapeClient) getLease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := h.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, lease)
	return lease, err
}

// Sync requests a sync now.
func (h *LandscapeClient) Sync(ctx context.Context) (*landscapev1alpha1.Landscape, error) {
	return h.patchLandscape(ctx, "requesting a sync of", func(l *landscapev1alpha1.Landscape) error {
		setAnnotation(l, landscapev1alpha1.AnnotationSyncRequested, h.clock.Now().UTC().Format(time.RFC3339Nano))
		return nil
	})
}

// Follow reports the progress of the sync that Sync requested.
func (h *LandscapeClient) Follow(ctx context.Context, asked *landscapev1alpha1.Landscape) <-chan receiver.Progress {
	return followRequest(ctx, h.clock, h.Get, asked)
}

// Suspend pauses syncing. A zero until means until Resume.
func (h *LandscapeClient) Suspend(ctx context.Context, reason string, until time.Time) error {
	_, err := h.patchLandscape(ctx, "suspending", func(l *landscapev1alpha1.Landscape) error {
		l.Spec.Suspend = true
		l.Spec.Suspension = &landscapev1alpha1.Suspension{Reason: reason, By: h.user}
		if !until.IsZero() {
			l.Spec.Suspension.Until = &metav1.Time{Time: until.UTC().Truncate(time.Second)}
		}
		return nil
	})
	return err
}

// Resume ends a suspension, and reports whether the Landscape was suspended.
func (h *LandscapeClient) Resume(ctx context.Context) (was bool, err error) {
	_, err = h.patchLandscape(ctx, "resuming", func(l *landscapev1alpha1.Landscape) error {
		was = l.Spec.Suspend
		l.Spec.Suspend, l.Spec.Suspension = false, nil
		return nil
	})
	return was, err
}

// PreviousRevision is the name of the revision that was applied before the current one.
const PreviousRevision = "previous"

// Pin applies an earlier revision and stays there. The revision is a whole commit, the prefix of
// one in the history, or Previous.
func (h *LandscapeClient) Pin(ctx context.Context, revision, reason string) (commit string, err error) {
	_, err = h.patchLandscape(ctx, "pinning", func(l *landscapev1alpha1.Landscape) error {
		if commit, err = resolveRevision(l, revision); err != nil {
			return err
		}
		now := metav1.NewTime(h.clock.Now().Truncate(time.Second))
		l.Spec.Pin = &landscapev1alpha1.Pin{Revision: commit, Reason: reason, By: h.user, At: &now}
		return nil
	})
	return commit, err
}

// Unpin follows the source again, and reports whether the Landscape was pinned.
func (h *LandscapeClient) Unpin(ctx context.Context) (was bool, err error) {
	_, err = h.patchLandscape(ctx, "unpinning", func(l *landscapev1alpha1.Landscape) error {
		was = l.Spec.Pin != nil
		l.Spec.Pin = nil
		return nil
	})
	return was, err
}

// Approve allows held deletions by their ids. The Landscape lists the deletions that its operator
// and gardenlets hold. A gardenlet's list may be late or incomplete, so onSeed accepts any id with
// a seed.
func (h *LandscapeClient) Approve(ctx context.Context, ids []string, onSeed bool) error {
	_, err := h.patchLandscape(ctx, "approving deletions of", func(l *landscapev1alpha1.Landscape) error {
		for _, given := range ids {
			id, err := resolveApproval(l.Status.Held, given, onSeed)
			if err != nil {
				return err
			}
			if !slices.Contains(l.Spec.Approved, id) {
				l.Spec.Approved = append(l.Spec.Approved, id)
			}
		}
		return nil
	})
	return err
}

// resolveRevision resolves a person's name for a commit.
func resolveRevision(l *landscapev1alpha1.Landscape, revision string) (string, error) {
	if revision == PreviousRevision {
		return previousCommit(l)
	}
	if digits, isDigest := strings.CutPrefix(revision, "sha256:"); len(revision) == 40 || isDigest && len(digits) == 64 {
		return revision, nil
	}
	// The history shows main@0a1b2c3d4e or sha256:0a1b2c3d4e5f; the digits alone suffice.
	digits := strings.TrimPrefix(commitOf(revision), "sha256:")
	var found, known []string
	for _, r := range l.Status.History {
		commit := commitOf(r.Revision)
		if !slices.Contains(known, commit) {
			known = append(known, commit)
			if len(digits) >= 4 && strings.HasPrefix(strings.TrimPrefix(commit, "sha256:"), digits) {
				found = append(found, commit)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("no revision of the history starts with %q: see pergola history, or give a full commit or %q", revision, PreviousRevision)
	}
	return "", fmt.Errorf("several revisions start with %q: %s", revision, strings.Join(found, ", "))
}

func previousCommit(l *landscapev1alpha1.Landscape) (string, error) {
	current := commitOf(l.Status.LastAppliedRevision)
	for _, r := range l.Status.History {
		commit := commitOf(r.Revision)
		if commit != current && (r.Result == landscapev1alpha1.SyncSucceeded || r.Result == landscapev1alpha1.SyncHeld) {
			return commit, nil
		}
	}
	return "", errors.New("the history has no other completely applied revision: see pergola history, or give a full commit")
}
