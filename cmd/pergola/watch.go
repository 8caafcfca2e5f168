// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/landscapes"
)

// watch applies, repairs drift and follows the files until it is interrupted, which is its regular
// end once the landscape was applied. If another process applies the landscape, it ends at once.
func (a *applyCommand) watch(c *landscape.Converger, l *landscapes.Landscape) error {
	stderr := a.cmd.ErrOrStderr()
	var first error
	began := false
	following := landscape.FileFollower{
		Clock:            clock.RealClock{},
		FilesFingerprint: func() (string, error) { return a.fingerprint(l) },
		Reload: func(context.Context) (*landscape.Converger, error) {
			var next *landscapes.Landscape
			var c *landscape.Converger
			err := panics.AsError(func() (err error) {
				if next, err = a.load(); err == nil {
					c, err = a.converger(next)
				}
				return err
			})()
			if err != nil {
				fmt.Fprintf(stderr, "Error: %s\nThe files have changed and cannot be applied; the previous state stays applied.\n", printableText(err.Error()))
				return nil, err
			}
			l = next
			a.printRevision("The files have changed: applying", l)
			return c, nil
		},
		Apply: func(ctx context.Context, c *landscape.Converger, attempt int) (time.Duration, error) {
			err := a.converge(ctx, c)
			var found commands.Finding
			switch {
			case a.cmd.Context().Err() != nil:
				first = err
				return 0, nil
			case ctx.Err() != nil:
				fmt.Fprintln(stderr, "Cancelled: the files have changed again.")
				return 0, nil
			case a.isLockedByOther && !began:
				first = err
				return 0, err
			case errors.As(err, &found):
				fmt.Fprintln(stderr, "Error:", printableText(err.Error()))
			}
			again := time.Duration(0)
			if err != nil {
				again = landscape.ApplyRetryPause(attempt)
				fmt.Fprintf(stderr, "Retrying in %s, or as soon as the files change. The applied parts are maintained until then.\n", again)
			}
			if !began {
				began = true
				fmt.Fprintln(stderr, "Watching: drift is repaired and changed files are applied until you press Ctrl-C.")
			}
			return again, nil
		},
	}
	err := following.Follow(a.cmd.Context(), c)
	switch {
	case first != nil && !began:
		return first
	case err != nil:
		return commands.Finding{Err: err}
	}
	return nil
}

// fingerprint returns a digest of all files that the result depends on.
func (a *applyCommand) fingerprint(l *landscapes.Landscape) (string, error) {
	files, err := landscape.Fingerprint(l.FS, landscape.Folders(l)...)
	if err != nil {
		return "", err
	}
	components, err := landscape.Fingerprint(catalogueFS(a.cmd), ".")
	return files + components, err
}
