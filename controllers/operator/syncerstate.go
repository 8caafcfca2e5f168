package operator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/accesstokens"
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/controllers/owner/renders"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/source"
)

// lifetime limits the work of a syncer.
type lifetime struct {
	// alive ends with run.
	alive context.Context
	// background are the syncer's goroutines; cancel ends them.
	background sync.WaitGroup
	cancel     context.CancelFunc
}

// origin is the source of a Landscape: the access to it, and the result of the last poll.
type origin struct {
	remote *connection
	// opened identifies the part of the object that the access uses. reopen is when to retry
	// without access.
	opened string
	reopen time.Time
	// closed is closed with the previous connection.
	closed <-chan struct{}
	head   source.Head
	polled time.Time
	newest atomic.Pointer[newest]
	// pollFailed is why the last poll failed.
	pollFailed error
	polling    bool
}

// requests are pending requests of people and receivers.
type requests struct {
	// askedPoll: a receiver or a person requested a poll. requested: a person requested a sync.
	askedPoll bool
	requested bool
	// operated: somebody requested an operation of the Garden since the last sync began.
	operated bool
	// answering: a requested poll is running. answered: it finished and followers must be notified.
	answering, answered bool
	// asking: a person requested the sync, and the source did not answer yet.
	asking bool
}

// faults are errors in the object that a person has to fix.
type faults struct {
	// misconfigured describes the error. nameTaken means that the name is the error: another
	// Landscape has or had it.
	misconfigured string
	nameTaken     bool
	// toldMissing and toldMisconfigured are the last reported texts.
	toldMissing, toldMisconfigured string
}

// tools stay from one revision to the next, so that unchanged objects cost nothing.
type tools struct {
	// tokens are renewed for the Garden until the syncer ends.
	tokens *accesstokens.Keeper
	// clusters, engine and engineForces are guarded by building.
	clusters     clusters
	engine       *apply.Engine
	engineForces bool
	// renders of the Garden and approved deletions stay from one revision to the next.
	renders renders.Cache
	charts  *charts.Puller
	permits permit.RunMemory
}

// jobs are the revisions in work: the preparation, the applied or maintained one, and the result of
// the last attempt.
type jobs struct {
	preparing *preparation
	// examined is the last examination of a waiting revision.
	examined *examination
	active   *job
	// ending is closed when the paused job is over.
	ending chan struct{}
	// last is the result of the last attempt in this process.
	last outcome
	// movesFrom are the Landscapes that made the last sync fail, see waitsFor. Other syncers read
	// it.
	movesFrom atomic.Pointer[[]string]
	// settled means that this process has a verdict on the source's revision.
	settled bool
	decided decision
	// unkept is why this process cannot maintain the applied revision; nil if it can or did not
	// try.
	unkept *unkept
}

// findings are differences between the clusters and Git.
type findings struct {
	// unhealthy are the conditions that are False, by owner.
	unhealthy map[string][]string
	// drift lists changes that could not be repaired since the last sync.
	drift []string
	// heldDrift are repairs of drift that wait for an approval.
	heldDrift []landscapev1alpha1.HeldDeletion
	// onSeeds are deletions that gardenlets hold. gardenlets is the wait of a successful sync; nil
	// for none.
	onSeeds    []landscapev1alpha1.HeldDeletion
	gardenlets *wait
}
