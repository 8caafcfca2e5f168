// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// definitionCheck checks whether the source serves ManagedResources, with and without the lease,
// and logs why it does not.
type definitionCheck struct {
	api    discovery.ServerResourcesInterfaceWithContext
	host   string
	clock  clock.Clock
	log    *slog.Logger
	served chan struct{}

	mu     sync.Mutex
	reason string
}

func newDefinitionCheck(source *rest.Config, log *slog.Logger) (*definitionCheck, error) {
	api, err := discovery.NewDiscoveryClientForConfig(source)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the API of the source: %w", err)
	}
	return &definitionCheck{api: api, host: source.Host, clock: clock.RealClock{}, log: log, served: make(chan struct{}), reason: "the API of the source cluster is not read yet"}, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*definitionCheck) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It checks less often once ManagedResources are served:
// deleting their definition deletes all of them, and a watch does not report that.
func (d *definitionCheck) Start(ctx context.Context) error {
	told, seen := "", false
	for {
		what, reason, hint := d.check(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if seen && what != "" && what != definitionAbsent {
			// a cluster that does not answer has not lost the definition
			what, reason = told, d.currentReason()
		}
		d.mu.Lock()
		d.reason = reason
		d.mu.Unlock()
		switch {
		case what == told:
		case what == "":
			d.log.Info("the source cluster serves ManagedResources now", "source", d.host)
		default:
			d.log.Error(reason, "source", d.host, "hint", hint)
		}
		told = what
		pause := sourceRetryPause
		if what == "" {
			pause = definitionCheckInterval
			if !seen {
				close(d.served)
			}
			seen = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.clock.After(pause):
		}
	}
}

// definitionCheckInterval is the interval of the checks once ManagedResources are served.
const definitionCheckInterval = time.Minute

// definitionAbsent says that the source does not have the definition of ManagedResources.
const definitionAbsent = "absent"

func (d *definitionCheck) currentReason() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reason
}

// check returns why ManagedResources are not served (a keyword and a sentence) and a hint. All
// three are empty if they are served.
func (d *definitionCheck) check(ctx context.Context) (what, reason, hint string) {
	version := resourcesv1alpha1.SchemeGroupVersion.String()
	list, err := d.api.ServerResourcesForGroupVersionWithContext(ctx, version)
	switch {
	case err == nil && hasManagedResources(list), apierrors.IsForbidden(err):
		// ManagedResources may be readable although API discovery is forbidden.
		return "", "", ""
	case err == nil, apierrors.IsNotFound(err):
		return definitionAbsent, fmt.Sprintf("the source cluster has no CustomResourceDefinition of ManagedResources (%s)", version),
			"install managedresources.resources.gardener.cloud there: deploy gardener-operator or gardenlet, or apply api/crds/resources.gardener.cloud_managedresources.yaml of Pergola's source. " +
				"If the ManagedResources are in another cluster, set --kubeconfig; this instance starts once the definition exists"
	}
	return "unknown " + string(apierrors.ReasonForError(err)), fmt.Sprintf("cannot read the API resources of the source cluster: %s", err), "the resource manager retries until it can"
}

func hasManagedResources(list *metav1.APIResourceList) bool {
	for _, r := range list.APIResources {
		if r.Kind == managedResourceKind.Kind && r.Name == "managedresources" {
			return true
		}
	}
	return false
}

// ready returns nil while ManagedResources are served.
func (d *definitionCheck) ready() error {
	if reason := d.currentReason(); reason != "" {
		return errors.New(reason)
	}
	return nil
}
