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
	// Play plays these Stages instead of the previous ones. None is a possible number.
	Play(ctx context.Context, all []Stage) error
	// Check sees to it that they are still played.
	Check(ctx context.Context) error
	// Stop ends it.
	Stop(ctx context.Context) error
}

// Keeper has those Stages played whose kind the API server serves.
type Keeper struct {
	Client *restclient.Client
	Stages []Stage
	Player Player
	// Interval is the time between two looks at the API server.
	Interval time.Duration
	// Log takes what changed and what failed.
	Log io.Writer

	served  served
	playing []string // names, nil before the first time
}

// Run keeps at it until ctx is done, and stops the player then. Errors are logged, once each, and
// tried again.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(k.Interval)
	defer tick.Stop()
	lastError := ""
	for {
		err := k.Sync(ctx)
		switch {
		case ctx.Err() != nil:
			return k.Player.Stop(context.WithoutCancel(ctx))
		case err == nil && lastError != "":
			k.logf("all is well again")
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

// Sync looks at the API server once and changes what is played accordingly. When nothing has
// changed it costs one small request.
func (k *Keeper) Sync(ctx context.Context) error {
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
	if k.playing != nil && slices.Equal(names, k.playing) {
		return k.Player.Check(ctx)
	}
	if err := k.Player.Play(ctx, wanted); err != nil {
		return fmt.Errorf("playing stages: %w", err)
	}
	k.logf("playing %d stages: %v", len(names), names)
	k.playing = names
	return nil
}

func (k *Keeper) logf(format string, args ...any) {
	fmt.Fprintf(k.Log, "%s %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}
