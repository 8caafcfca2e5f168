// SPDX-License-Identifier: Apache-2.0

// Package prometheus asks instances of Prometheus whether their targets are healthy. Running
// servers do not prove that: a target may be unreachable, or nothing is scraped. Rules of each
// instance record the result as Query (components/kubernetes/prometheus_contents.cue).
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/pergola-dev/pergola/internal/addresses"
)

// HealthQuery selects one series of value 1 if all is well, else one of value 0 per trouble, with
// labels that name it.
const HealthQuery = "healthcheck:up"

const (
	// queryTimeout is the timeout of one server.
	queryTimeout = 5 * time.Second
	// maxProblemBytes is the maximum length of the reported trouble, in bytes.
	maxProblemBytes = 400
)

// Check queries one server. trouble is the trouble that it reports, or "" for none. An error means
// that nothing is known.
func Check(ctx context.Context, server api.Client) (trouble string, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	// The zero time means the server's time.
	value, warnings, err := promv1.NewAPI(server).Query(ctx, HealthQuery, time.Time{})
	if err != nil {
		return "", fmt.Errorf("querying %s: %w", HealthQuery, addresses.RedactError(err))
	}
	if len(warnings) > 0 {
		return "", fmt.Errorf("querying %s: the server warns: %s", HealthQuery, strings.Join(warnings, "; "))
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return "", fmt.Errorf("querying %s: the answer is a %s instead of a vector", HealthQuery, value.Type())
	}
	return evaluateVector(vector)
}

// evaluateVector evaluates an answer. A contradictory answer is an error: the rules are wrong.
func evaluateVector(vector model.Vector) (trouble string, err error) {
	if len(vector) == 0 {
		return "", errors.New("it has no series " + HealthQuery + ": its rules have not been evaluated yet, or are missing")
	}
	well, other := 0, false
	samples := make([]string, 0, len(vector))
	for _, sample := range vector {
		switch sample.Value {
		case 1:
			well++
		case 0:
		default:
			other = true
		}
		samples = append(samples, fmt.Sprintf("%s => %s", sample.Metric, sample.Value))
	}
	slices.Sort(samples)
	told := truncateProblem(strings.Join(samples, ", "))
	switch {
	case other || well > 1 || well == 1 && len(vector) > 1:
		return "", errors.New("it contradicts itself: " + told)
	case well == 1:
		return "", nil
	}
	return told, nil
}

func truncateProblem(text string) string {
	if len(text) <= maxProblemBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxProblemBytes], "") + "…"
}
