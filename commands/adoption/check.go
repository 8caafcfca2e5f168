// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// Adopter checks a landscape that upstream's controllers run, stops them, and starts them again.
type Adopter struct {
	// Converger is the converger of the landscape. It must not hold leases.
	Converger *landscape.Converger
	// Landscape is the name of the landscape.
	Landscape string
	// Catalogue determines the supported version of Gardener.
	Catalogue fs.FS
	Clock     clock.WithTicker
	// OnStep is called for each step; it may be nil.
	OnStep func(string)
	// PollInterval is the interval of polling while waiting; the default is 1 s.
	PollInterval time.Duration
}

// Check compares the live objects with Git and writes nothing. The report lists what it cannot
// compare.
func (a *Adopter) Check(ctx context.Context) (*Report, error) {
	runtime := a.Converger.Cluster(landscape.Runtime)
	if runtime == nil {
		return nil, errors.New("no access to the runtime cluster: set spec.clusters.runtime in landscape.yaml, or give --kubeconfig runtime=PATH")
	}
	r := &Report{Landscape: a.Landscape}
	problem := func(what string, err error) {
		for _, p := range apply.Problems(err) {
			r.Problems = append(r.Problems, what+": "+p)
		}
	}
	garden, err := a.Converger.LiveGarden(ctx)
	if err != nil {
		return nil, err
	}
	if garden != nil {
		r.Garden = garden.GetName()
	}
	if err := a.checkGarden(r, garden); err != nil {
		return nil, err
	}
	if err := a.checkVersions(r, garden); err != nil {
		return nil, err
	}
	checkRotation(r, garden)
	p, err := a.Converger.Plan(ctx)
	problem("objects", err)
	problem("webhooks", a.planWithoutWebhooks(ctx, p))
	a.checkObjects(r, p)
	planned, err := a.Converger.PlanSecrets(ctx)
	problem("secrets", err)
	checkSecrets(r, planned)
	for _, check := range []struct {
		what string
		run  func(context.Context, *Report) error
	}{
		{"storage", a.checkStorage}, {"exposure", a.checkExposure}, {"identity", a.checkIdentity}, {"the Gardener API", a.checkGardenAPI}, {"ManagedResources", a.checkManagedResources}, {"extensions", a.checkExtensions}, {"controllers", a.checkControllers},
	} {
		problem(check.what, check.run(ctx, r))
	}
	r.sortAndCount()
	return r, nil
}

// readLive reads an object without a cache, or nil if the object or its kind does not exist.
func readLive(ctx context.Context, c *apply.Cluster, ref apply.Ref) (*unstructured.Unstructured, error) {
	live, err := c.GetLive(ctx, ref)
	switch {
	case err == nil:
		return live, nil
	case isAbsent(err):
		return nil, nil
	}
	return nil, c.Explain(ref, "read", err)
}

func stringField(o *unstructured.Unstructured, fields ...string) string {
	if o == nil {
		return ""
	}
	s, _, _ := unstructured.NestedString(o.Object, fields...)
	return s
}

// objectNames returns the objects of items.
func objectNames(items []change.Item) []string {
	var out []string
	for _, i := range items {
		out = append(out, i.Object.String())
	}
	return out
}
