// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// GenerateAll fulfils requests in the order of their references, in parallel where they have none.
// Before it generates anything, it rejects cycles and references to names that were never
// requested. A failed request stops only its dependents; all errors are reported. The result is in
// the order of the requests.
func (m *Manager) GenerateAll(ctx context.Context, configs []Config) ([]Ref, error) {
	configs, err := Dedupe(configs)
	if err != nil {
		return nil, err
	}
	waves, err := m.dependencyWaves(configs)
	if err != nil {
		return nil, err
	}
	refs, errs := make([]Ref, len(configs)), make([]error, len(configs))
	failed := map[string]bool{}
	for _, wave := range waves {
		group := errgroup.Group{}
		group.SetLimit(runtime.GOMAXPROCS(0) * 2) // keys need CPU, requests wait
		for _, i := range wave {
			if on := slices.IndexFunc(configs[i].dependencies(), func(d string) bool { return failed[d] }); on >= 0 {
				errs[i] = fmt.Errorf("secret %q waits for %q", configs[i].Name, configs[i].dependencies()[on])
				continue
			}
			group.Go(func() error {
				refs[i], errs[i] = m.Generate(ctx, configs[i])
				return nil
			})
		}
		_ = group.Wait()
		for _, i := range wave {
			if errs[i] != nil {
				failed[configs[i].Name] = true
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return refs, nil
}

// dependencyWaves groups the indices of requests, so that each comes in a later wave than its
// dependencies.
func (m *Manager) dependencyWaves(configs []Config) ([][]int, error) {
	requested := map[string]bool{}
	for _, c := range configs {
		requested[c.Name] = true
	}
	var (
		errs    []error
		pending []int
	)
	for i, c := range configs {
		for _, d := range c.dependencies() {
			if _, known := m.entryOf(d); !known && !requested[d] {
				errs = append(errs, fmt.Errorf("secret %q refers to %q, which is not requested", c.Name, d))
			}
		}
		pending = append(pending, i)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var waves [][]int
	done := map[string]bool{}
	for len(pending) > 0 {
		var wave, rest []int
		for _, i := range pending {
			waiting := slices.ContainsFunc(configs[i].dependencies(), func(d string) bool { return requested[d] && !done[d] })
			if waiting {
				rest = append(rest, i)
			} else {
				wave = append(wave, i)
			}
		}
		if len(wave) == 0 {
			var names []string
			for _, i := range rest {
				names = append(names, configs[i].Name)
			}
			slices.Sort(names)
			return nil, fmt.Errorf("secrets refer to each other in a cycle: %s", strings.Join(names, ", "))
		}
		for _, i := range wave {
			done[configs[i].Name] = true
		}
		waves, pending = append(waves, wave), rest
	}
	return waves, nil
}
