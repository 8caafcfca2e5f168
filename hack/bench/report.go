// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// Report is everything that was measured.
type Report struct {
	Machine Machine `json:"machine"`
	Rows    []Row   `json:"rows"`
	// MissingPeers are peers that are not available.
	MissingPeers []string `json:"leftOut,omitempty"`
	// BrokenContracts are contracts that do not hold.
	BrokenContracts []string `json:"broken,omitempty"`
}

// Machine describes the machine of the run: numbers of different machines are not comparable.
type Machine struct {
	Cores int `json:"cores"`
	// Load is the average number of processes that wanted a core in the last minute; it is 0 if
	// unknown.
	Load      float64 `json:"load,omitempty"`
	Processor string  `json:"processor,omitempty"`
	OS        string  `json:"os"`
	Go        string  `json:"go"`
	Pergola   string  `json:"pergola"`
}

// Row is one task that was done in several ways.
type Row struct {
	Title   string   `json:"title"`
	Runs    int      `json:"runs"`
	Results []Result `json:"results"`
}

// Result is one way: medians over all runs.
type Result struct {
	Name    string `json:"name"`
	Subject bool   `json:"subject,omitempty"`
	Sample
	AllSeconds []float64 `json:"allSeconds"`
	// Ratio is the subject's time divided by this one's; CPURatio is the same for CPU time.
	Ratio    float64 `json:"ratio,omitempty"`
	CPURatio float64 `json:"cpuRatio,omitempty"`
}

func newReport(ctx context.Context, s settings) *Report {
	r := &Report{Machine: Machine{Cores: runtime.NumCPU(), Processor: processor(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(load), &r.Machine.Load)
	}
	if version, err := exec.CommandContext(ctx, s.pergola, "--version").Output(); err == nil {
		r.Machine.Pergola = strings.TrimSpace(string(version))
	}
	return r
}

func processor() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// fillRatios fills in the ratios of a row.
func (r *Row) fillRatios() {
	subject := slices.IndexFunc(r.Results, func(x Result) bool { return x.Subject })
	if subject < 0 {
		return
	}
	for i := range r.Results {
		other := &r.Results[i]
		if i == subject {
			continue
		}
		if other.Seconds > 0 {
			other.Ratio = r.Results[subject].Seconds / other.Seconds
		}
		if other.CPUSeconds > 0 {
			other.CPURatio = r.Results[subject].CPUSeconds / other.CPUSeconds
		}
	}
}

// addResults adds results of another row for comparison, if its cases would be the same commands.
func (r *Row) addResults(others ...Result) {
	for _, other := range others {
		other.Subject = false
		r.Results = append(r.Results, other)
	}
	r.fillRatios()
}

func (r *Report) print(w io.Writer, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%d cores (%s), load %.1f, %s, %s, %s\n", r.Machine.Cores, r.Machine.Processor, r.Machine.Load, r.Machine.OS, r.Machine.Go, r.Machine.Pergola)
	fmt.Fprintf(out, "Medians. × is the time or CPU time of Pergola (▸) divided by that of the line: below 1, Pergola takes less.\n")
	for _, row := range r.Rows {
		fmt.Fprintf(out, "\n%-52s %8s %8s %8s %7s %7s\n", row.Title, "seconds", "CPU s", "peak MB", "× time", "× CPU")
		for _, result := range row.Results {
			result.print(out)
		}
	}
	for _, text := range r.MissingPeers {
		fmt.Fprintf(out, "\nLeft out: %s\n", text)
	}
	for _, text := range r.BrokenContracts {
		fmt.Fprintf(out, "\nBROKEN: %s\n", text)
	}
	return out.Flush()
}

func (r Result) print(w io.Writer) {
	ratio := func(x float64) string {
		if x == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", x)
	}
	mark := "  "
	if r.Subject {
		mark = "▸ "
	}
	line := fmt.Sprintf("%s%-50s %8s %8s %8d %7s %7s", mark, r.Name, formatSeconds(r.Seconds), formatSeconds(r.CPUSeconds), r.PeakBytes>>20, ratio(r.Ratio), ratio(r.CPURatio))
	fmt.Fprintln(w, strings.TrimRight(line, " "))
	if r.Requests != nil {
		text := formatRequests(r.Requests)
		if r.Units > 0 {
			text = fmt.Sprintf("%.1f for each of %d: %s", r.perUnit(), r.Units, text)
		}
		fmt.Fprintf(w, "    requests: %s\n", text)
	}
	if r.OwnBytes > 0 {
		fmt.Fprintf(w, "    MB of its own, without the pages of the program: %d\n", r.OwnBytes>>20)
	}
	if r.ServerCPUSeconds > 0 {
		fmt.Fprintf(w, "    CPU seconds of the API server and etcd: %s\n", formatSeconds(r.ServerCPUSeconds))
	}
	if l := r.Latency; l != nil {
		p99 := ""
		if l.P99 > 0 {
			p99 = fmt.Sprintf("p99 %.0f, ", l.P99*1e3)
		}
		fmt.Fprintf(w, "    milliseconds of each: median %.0f, p95 %.0f, %smax %.0f, of %d\n", l.Median*1e3, l.P95*1e3, p99, l.Max*1e3, l.Count)
	}
	if r.Parts != nil {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(r.Parts)) {
			parts = append(parts, name+" "+formatSeconds(r.Parts[name]))
		}
		fmt.Fprintf(w, "    seconds of it: %s\n", strings.Join(parts, ", "))
	}
}

func formatSeconds(x float64) string {
	if x < 0.1 {
		return fmt.Sprintf("%.4f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func formatRequests(requests map[string]int) string {
	list := []string{}
	for _, verb := range slices.Sorted(maps.Keys(requests)) {
		list = append(list, fmt.Sprintf("%d %s", requests[verb], verb))
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
