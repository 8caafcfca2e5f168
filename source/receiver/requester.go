package receiver

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// Key is namespace and name of a Landscape.
type Key = types.NamespacedName

// Requester is who syncs.
type Requester interface {
	// Receiver gives a receiver of a Landscape, false where there is none or its Secret cannot be
	// read. It is asked for each request, also of strangers and for names of their choice: it has
	// to answer from memory.
	Receiver(ctx context.Context, namespace, landscape, name string) (Target, bool)
	// Request asks for a sync and returns at once. It is called at most once at a time for a
	// Landscape; what comes in short succession was collapsed, and only the newest push is told.
	Request(ctx context.Context, key Key, push Push)
	// Follow tells the progress of a commit's sync, and is called before the Request of the commit.
	// The channel ends after the Progress that is Done (applied, failed, or superseded by a later
	// commit), or when the context does. Commit "" means: whatever the sync finds. Whoever reads
	// slowly may miss progress, but never the last one. An error means that the sync cannot be
	// followed; it is asked for nevertheless.
	Follow(ctx context.Context, key Key, commit string) (<-chan Progress, error)
}

// Target is what a receiver is configured to be.
type Target struct {
	// Type is the form of the requests.
	Type landscapev1alpha1.ReceiverType
	// Token is what the sender proves to know. A receiver without one refuses everything.
	Token []byte
	// Ref is what the Landscape follows: only pushes of it lead to a sync. The zero value means
	// branch main.
	Ref landscapev1alpha1.Reference
}

// Push is what a sender said.
type Push struct {
	// Ref is the full name of what was pushed (refs/heads/main), "" if the sender only asked for a
	// sync.
	Ref string
	// Commit that the ref stands at now; "" if it was not said, or the ref was deleted.
	Commit string
	// By is who pushed, for people; "" if unknown. It is the word of the sender, bounded and
	// without control characters.
	By string
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
	// applied, but something waits for an approval, a window or the end of a suspension
	PhaseHeld = "Held"
)

// Progress is one line about a sync.
type Progress struct {
	Time time.Time `json:"time"`
	// Phase is one of the constants, or what the sync calls it.
	Phase string `json:"phase"`
	// Message is a sentence for people, without secrets.
	Message string `json:"message,omitempty"`
	// Done says that this is the last line.
	Done bool `json:"done,omitempty"`
	// Err says why the sync failed; only with Done.
	Err string `json:"error,omitempty"`
	// Applied says of a failure that the runtime cluster and the virtual garden are as the revision
	// says, and only seeds are not.
	Applied bool `json:"applied,omitempty"`
}
