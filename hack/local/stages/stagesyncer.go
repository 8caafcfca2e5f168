// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pergola-dev/pergola/hack/local/restclient"
)

// Player plays Stages.
type Player interface {
	// Play replaces the played Stages by these, possibly none.
	Play(ctx context.Context, all []Stage) error
	// Check ensures that they are still played.
	Check(ctx context.Context) error
	// Stop stops playing.
	Stop(ctx context.Context) error
}

// StageSyncer plays the Stages whose kind the API server serves.
type StageSyncer struct {
	Client *restclient.Client
	Stages []Stage
	Player Player
	// Interval is the time between two checks of the API server.
	Interval time.Duration
	// Log takes changes and errors.
	Log io.Writer

	served      servedKindIndex
	playedNames []string // names, nil before the first sync
}

// Run syncs until ctx is done, and then stops the player. It logs each error once and retries.
func (k *StageSyncer) Run(ctx context.Context) error {
	tick := time.NewTicker(k.Interval)
	defer tick.Stop()
	lastError := ""
	for {
		err := k.Sync(ctx)
		switch {
		case ctx.Err() != nil:
			return k.Player.Stop(context.WithoutCancel(ctx))
		case err == nil && lastError != "":
			k.logf("the error is over")
			lastError = ""
		case err != nil && err.Error() != lastError:
			lastError = err.Error()
			k.logf("error: %s", lastError)
		}
		select {
		case <-ctx.Done():
			return k.Player.Stop(context.WithoutCancel(ctx))
		case <-tick.C:
		}
	}
}

// Sync reads the served kinds once and changes the played Stages accordingly. Without a change it
// costs one small request.
func (k *StageSyncer) Sync(ctx context.Context) error {
	if err := k.served.refresh(ctx, k.Client, k.Stages); err != nil {
		return err
	}
	var wanted []Stage
	names := []string{}
	for _, stage := range k.Stages {
		if k.served.has(stage) {
			wanted = append(wanted, stage)
			names = append(names, stage.Name)
		}
	}
	if k.playedNames != nil && slices.Equal(names, k.playedNames) {
		return k.Player.Check(ctx)
	}
	if err := k.Player.Play(ctx, wanted); err != nil {
		return fmt.Errorf("playing stages: %w", err)
	}
	k.logf("playing %d stages: %v", len(names), names)
	k.playedNames = names
	return nil
}

func (k *StageSyncer) logf(format string, args ...any) {
	fmt.Fprintf(k.Log, "%s %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}
