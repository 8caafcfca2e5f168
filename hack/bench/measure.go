// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Sample is one run of a case.
type Sample struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	// PeakBytes is the largest resident memory of the process.
	PeakBytes int64 `json:"peakBytes"`
	// OwnBytes is the peak without pages of files, if known.
	OwnBytes int64          `json:"ownBytes,omitempty"`
	Requests map[string]int `json:"requests,omitzero"`
	// Parts are the seconds of single steps.
	Parts map[string]float64 `json:"parts,omitempty"`
	// ServerCPUSeconds is the CPU time of the API server and its etcd.
	ServerCPUSeconds float64 `json:"serverCPUSeconds,omitempty"`
	// Units is the number of bundles or changes that the requests were for.
	Units   int      `json:"units,omitempty"`
	Latency *Latency `json:"latency,omitempty"`
}

// Latency is the latency of single changes, in seconds.
type Latency struct {
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99,omitempty"`
	Max    float64 `json:"max"`
	Count  int     `json:"count"`
}

// perUnit is the number of requests for one bundle, or one change.
func (s Sample) perUnit() float64 {
	sum := 0
	for _, n := range s.Requests {
		sum += n
	}
	return float64(sum) / float64(max(1, s.Units))
}

// Case is a command that is run and measured.
type Case struct {
	Name string
	// Subject marks the case that the others in the row are compared with.
	Subject bool
	Command []string
	// Dir is the working directory of the command; by default, the bench's own.
	Dir string
	Env []string
	// MeasuredInside takes time, CPU and requests from the JSON that the command prints, instead of
	// the whole process.
	MeasuredInside bool
	// AllowsFindings says that exit code 1 is a result: the command has findings.
	AllowsFindings bool
	// Before runs ahead of each run and is not measured.
	Before func(context.Context) error
}

// slowSeconds is the number of seconds above which a case runs only once.
const slowSeconds = 15

// measure runs the cases of a row in turns, forwards and backwards, so that other load affects all
// of them alike.
func measure(ctx context.Context, s settings, title string, runs int, cases []*Case) (Row, error) {
	samples := make([][]Sample, len(cases))
	for run := range runs {
		fmt.Fprintf(s.log, "%s: run %d of %d\n", title, run+1, runs)
		for k := range cases {
			i := k
			if run%2 == 1 {
				i = len(cases) - 1 - k
			}
			if run > 0 && samples[i][0].Seconds > slowSeconds {
				continue
			}
			sample, err := cases[i].run(ctx)
			if err != nil {
				return Row{}, fmt.Errorf("%s: %w", cases[i].Name, err)
			}
			samples[i] = append(samples[i], sample)
		}
	}
	row := Row{Title: title, Runs: runs}
	for i, c := range cases {
		row.Results = append(row.Results, medianResult(c, samples[i]))
	}
	row.fillRatios()
	return row, nil
}

func (c *Case) run(ctx context.Context) (Sample, error) {
	if c.Before != nil {
		if err := c.Before(ctx); err != nil {
			return Sample{}, err
		}
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Command[0], c.Command[1:]...)
	cmd.Dir, cmd.Env = c.Dir, append(os.Environ(), c.Env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	sample := Sample{Seconds: time.Since(start).Seconds()}
	var exit *exec.ExitError
	if c.AllowsFindings && errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	if err != nil {
		return Sample{}, fmt.Errorf("%s: %w\n%s", strings.Join(first(c.Command, 8), " "), err, tail(stdout.String()+stderr.String()))
	}
	sample.CPUSeconds = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	sample.PeakBytes = peakMemory(cmd.ProcessState)
	if c.MeasuredInside || strings.HasPrefix(stdout.String(), `{"seconds"`) {
		var inside Sample
		if err := json.Unmarshal(stdout.Bytes(), &inside); err != nil {
			return Sample{}, fmt.Errorf("its output: %w", err)
		}
		if c.MeasuredInside {
			sample.Seconds, sample.CPUSeconds = inside.Seconds, inside.CPUSeconds
		}
		sample.Requests, sample.Parts = inside.Requests, inside.Parts
	}
	return sample, nil
}

// peakMemory returns the largest resident memory in bytes; Linux counts in KiB, macOS in bytes.
func peakMemory(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) * 1024
}

// medianResult returns the median of each value; requests and parts are from the last run.
func medianResult(c *Case, samples []Sample) Result {
	median := func(of func(Sample) float64) float64 {
		var values []float64
		for _, sample := range samples {
			values = append(values, of(sample))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	last := samples[len(samples)-1]
	r := Result{Name: c.Name, Subject: c.Subject, Sample: Sample{
		Seconds:    median(func(s Sample) float64 { return s.Seconds }),
		CPUSeconds: median(func(s Sample) float64 { return s.CPUSeconds }),
		PeakBytes:  int64(median(func(s Sample) float64 { return float64(s.PeakBytes) })),
		Requests:   last.Requests, Parts: last.Parts,
	}}
	for _, sample := range samples {
		r.AllSeconds = append(r.AllSeconds, sample.Seconds)
	}
	return r
}

func first(list []string, n int) []string { return list[:min(n, len(list))] }

func tail(text string) string {
	if len(text) > 2000 {
		text = "…" + text[len(text)-2000:]
	}
	return strings.TrimSpace(text)
}
