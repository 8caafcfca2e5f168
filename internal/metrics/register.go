// SPDX-License-Identifier: Apache-2.0

// Package metrics registers Prometheus metrics. The metrics themselves are in the packages that
// count.
package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers a collector, or replaces it by the equal collector of another instance in
// this process.
func Register[T prometheus.Collector](to prometheus.Registerer, collector *T) error {
	err := to.Register(*collector)
	if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
		if there, ok := already.ExistingCollector.(T); ok {
			*collector = there
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}
