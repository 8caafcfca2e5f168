// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// Key is the namespace and name of a Landscape.
type Key = types.NamespacedName

// Requester performs syncs.
type Requester interface {
	// Receiver returns a receiver of a Landscape, and false if it does not exist or its Secret
	// cannot be read. It must answer from memory, because strangers cause calls with any names.
	Receiver(ctx context.Context, namespace, landscape, name string) (Target, bool)
	// Request requests a sync and returns at once. Calls for one Landscape do not overlap; pushes
	// in short succession are merged into the newest.
	Request(ctx context.Context, key Key, push Push)
	// Follow reports the progress of a commit's sync, and is called before the Request of the
	// commit. The channel ends after the Progress that is Done (applied, failed, or superseded by a
	// later commit), or with the context. Commit "" means any commit that the sync finds. A slow
	// reader may miss progress, but never the last one. An error means that the sync cannot be
	// followed; it is requested nevertheless.
	Follow(ctx context.Context, key Key, commit string) (<-chan Progress, error)
}

// Target is the configuration of a receiver.
type Target struct {
	// Type is the format of the requests.
	Type landscapev1alpha1.ReceiverType
	// Token is the secret that the sender must prove. A receiver without one refuses everything.
	Token []byte
	// Ref is the reference that the Landscape follows: only pushes of it lead to a sync. The zero
	// value means branch main.
	Ref landscapev1alpha1.Reference
}

// Push is the content of a request.
type Push struct {
	// Ref is the full name of the pushed ref (refs/heads/main); it is "" if the sender only
	// requested a sync.
	Ref string
	// Commit is the commit that the ref points to now; it is "" if unknown, or if the ref was
	// deleted.
	Commit string
	// Pusher is the pusher, for people; it is "" if unknown. It is the sender's claim, bounded and
	// without control characters.
	Pusher string
}

// Phases of a Progress.
const (
	PhaseQueued     = "Queued"
	PhaseFetching   = "Fetching"
	PhaseValidating = "Validating"
	PhaseApplying   = "Applying"
	PhaseWaiting    = "Waiting" // for health
	PhaseApplied    = "Applied"
	PhaseFailed     = "Failed"
	PhaseSuperseded = "Superseded" // a later commit is synced instead
	// PhaseHeld means that the revision is applied, but that something waits for an approval, a
	// window or the end of a suspension.
	PhaseHeld = "Held"
)

// Progress is one line about a sync.
type Progress struct {
	Time time.Time `json:"time"`
	// Phase is one of the constants, or another phase of the sync.
	Phase string `json:"phase"`
	// Message is a sentence for people, without secrets.
	Message string `json:"message,omitempty"`
	// Done says that this is the last line.
	Done bool `json:"done,omitempty"`
	// Err says why the sync failed; only with Done.
	Err string `json:"error,omitempty"`
	// Applied says that a failure affects only seeds: the runtime cluster and the virtual garden
	// match the revision.
	Applied bool `json:"applied,omitempty"`
}
