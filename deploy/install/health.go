// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/health"
)

// healthInterval is the interval of health checks.
const healthInterval = time.Second

// UnhealthyError lists installed objects that do not become healthy in time.
type UnhealthyError struct {
	Timeout time.Duration
	Objects []string
}

func (e *UnhealthyError) Error() string {
	return fmt.Sprintf("not healthy after %s: %s", e.Timeout, strings.Join(e.Objects, "; "))
}

// waitUntilHealthy waits for workloads; other objects of an installation are not unhealthy for
// long.
func (i *Installer) waitUntilHealthy(ctx context.Context, objects []*unstructured.Unstructured) error {
	if i.options.Timeout <= 0 {
		return nil
	}
	deadline := i.options.Clock.Now().Add(i.options.Timeout)
	tick := i.options.Clock.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		unhealthy, err := i.unhealthyObjects(ctx, objects)
		switch {
		case err != nil:
			return err
		case len(unhealthy) == 0:
			return nil
		case !i.options.Clock.Now().Before(deadline):
			return &UnhealthyError{Timeout: i.options.Timeout, Objects: unhealthy}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C():
		}
	}
}

func (i *Installer) unhealthyObjects(ctx context.Context, objects []*unstructured.Unstructured) ([]string, error) {
	var out []string
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		ref := apply.RefOf(o)
		live, err := i.options.Cluster.GetLive(ctx, ref)
		if err != nil {
			return nil, i.options.Cluster.Explain(ref, "read", err)
		}
		if verdict := health.Check(live); !verdict.Healthy || verdict.Progressing {
			out = append(out, fmt.Sprintf("%s: %s", ref, verdict.Message))
		}
	}
	return out, nil
}
