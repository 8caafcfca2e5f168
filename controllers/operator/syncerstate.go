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

// lifetime says how long a syncer works.
type lifetime struct {
	// alive ends with run.
	alive context.Context
	// background are the goroutines that work for this one; cancel ends them.
	background sync.WaitGroup
	cancel     context.CancelFunc
}

// origin is the source of a Landscape: the access to it, and what it had when it was polled last.
type origin struct {
	remote *connection
	// opened is the part of the object that the access to the source was looked for with; reopen is
	// when it is looked for again, while there is none.
	opened string
	reopen time.Time
	// closed is closed when the connection before is.
	closed <-chan struct{}
	head   source.Head
	polled time.Time
	newest atomic.Pointer[newest]
	// pollFailed is why the last poll did not work.
	pollFailed error
	polling    bool
}

// requests are what people and receivers asked for and did not get yet.
type requests struct {
	// askedPoll is of a receiver, requested of a person (annotation).
	askedPoll bool
	requested bool
	// operated says that the Garden was asked for an operation since the last sync began.
	operated bool
	// answering says that the poll that goes on was asked for, answered that it is over and those
	// who follow it have to be told how it is.
	answering, answered bool
	// asking says that a person asked for the sync, and the source did not answer yet.
	asking bool
}

// faults are what a person has to mend in the object.
type faults struct {
	// misconfigured says what is wrong with the object, nameTaken that it is the name, which is or
	// was another one's.
	misconfigured string
	nameTaken     bool
	// toldMissing and toldMisconfigured are what was told of them last.
	toldMissing, toldMisconfigured string
}

// tools pass from one revision to the next, so an unchanged object costs nothing.
type tools struct {
	// tokens are requested for the Garden until the end.
	tokens *accesstokens.Keeper
	// clusters, engine and engineForces belong to whoever holds building.
	clusters     clusters
	engine       *apply.Engine
	engineForces bool
	// renders of the Garden, and what was let pass, are kept from one revision to the next.
	renders renders.Kept
	charts  *charts.Puller
	permits permit.Memory
}

// jobs are the revisions at work: the one that is prepared, the one that is applied or kept, and
// how the last attempt ended.
type jobs struct {
	preparing *preparation
	// examined is what was validated last while it waits.
	examined *examination
	active   *job
	// ending is closed when the job that was paused is over.
	ending chan struct{}
	// last is the outcome of the last attempt, in this process.
	last outcome
	// movesFrom are the Landscapes because of which it failed, see waitsFor; other syncers look at
	// it.
	movesFrom atomic.Pointer[[]string]
	// settled says that this process has come to a verdict on what the source is at.
	settled bool
	decided decision
	// unkept says that what was applied before this process cannot be kept by it; nil if it can, or
	// was not tried.
	unkept *unkept
}

// findings are what keeps the clusters from being as Git says.
type findings struct {
	// unhealthy are the conditions that are not True, by owner.
	unhealthy map[string][]string
	// drift is what could not be repaired since the last sync.
	drift []string
	// heldDrift are the repairs of it that wait for an approval.
	heldDrift []landscapev1alpha1.HeldDeletion
	// onSeeds is what gardenlets hold, gardenlets what a sync that went well waits for; nil for
	// nothing.
	onSeeds    []landscapev1alpha1.HeldDeletion
	gardenlets *wait
}
