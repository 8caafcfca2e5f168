// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"
)

// sample is the result of a scenario; hack/bench reads it.
type sample struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	PeakBytes  int64   `json:"peakBytes"`
	// OwnBytes is the peak without pages of files.
	OwnBytes int64 `json:"ownBytes,omitempty"`
	// ServerCPUSeconds is the CPU time of the API server and etcd.
	ServerCPUSeconds float64       `json:"serverCPUSeconds,omitempty"`
	Requests         requestCounts `json:"requests,omitzero"`
	// Units is the number of bundles, or of changes, that the requests were for.
	Units   int      `json:"units"`
	Latency *latency `json:"latency,omitempty"`
}

// latency is the latency of single changes, in seconds.
type latency struct {
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
	Count  int     `json:"count"`
}

func latencyOf(took []time.Duration) *latency {
	if len(took) == 0 {
		return nil
	}
	took = slices.Sorted(slices.Values(took))
	at := func(share float64) float64 { return took[min(len(took)-1, int(share*float64(len(took))))].Seconds() }
	return &latency{Median: at(0.5), P95: at(0.95), Max: at(1), Count: len(took)}
}
