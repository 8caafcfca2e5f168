// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// newChartPuller stores the charts of Extensions in the cache folder of the command.
func newChartPuller(cmd *cobra.Command) *charts.Puller {
	p := &charts.Puller{Clock: clock.RealClock{}}
	if dir, err := cacheDir(cmd); err == nil {
		p.Dir = filepath.Join(dir, "charts")
	}
	return p
}

// withCharts pulls the charts of a landscape's Extensions with the Secrets that it declares.
func withCharts(cmd *cobra.Command, l *landscapes.Landscape) render.Setting {
	return render.WithCharts(func(wanted []gardencorev1.OCIRepository) map[string]render.Chart {
		return newChartPuller(cmd).PullAll(cmd.Context(), wanted, func(name string) (map[string][]byte, error) { return revisions.DeclaredSecret(l, name) })
	})
}
