// SPDX-License-Identifier: Apache-2.0

package components_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hourBeforeDecember is one hour before the end of November, for the rules of garden-metering-meta
// on metrics of the garden and of its seeds.
var hourBeforeDecember = time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)

func newMeteringServer(t *testing.T) *testPrometheus {
	return newServer(t, "garden-metering-meta", hourBeforeDecember)
}

// shootUsage is the usage of a shoot, as reported by gardener-metrics-exporter and the seed.
type shootUsage struct {
	month                int
	version              string
	cpu, memory, volumes float64
}

func (u shootUsage) series() map[string]float64 {
	if u.month == 0 {
		u.month = 11
	}
	if u.version == "" {
		u.version = "1.34.1"
	}
	const info = `garden_shoot_info{shoot_uid="1", project="dev", name="one", seed="s", iaas="local", region="here", seed_iaas="local", seed_region="here", ` +
		`failure_tolerance="zone", version=%q, cost_object="42", cost_object_owner="x", is_seed="false", is_hibernated="false", status="healthy", instance="a"}`
	const by = `metering:%s:sum_by_namespace{namespace="shoot--dev--one", shoot_uid="1", seed="s", year="2026", month="%d"}`
	return map[string]float64{
		fmt.Sprintf(info, u.version):                           0,
		fmt.Sprintf(by, "cpu_usage", u.month):                  u.cpu,
		fmt.Sprintf(by, "working_set_memory", u.month):         u.memory,
		fmt.Sprintf(by, "persistent_volume_claims", u.month):   u.volumes,
		`metering:cpu_usage:sum_by_namespace{namespace="etc"}`: 7, // not of a shoot
	}
}

// withoutPrefix removes series by the prefix of their names.
func withoutPrefix(series map[string]float64, prefix string) map[string]float64 {
	out := maps.Clone(series)
	maps.DeleteFunc(out, func(name string, _ float64) bool { return len(name) >= len(prefix) && name[:len(prefix)] == prefix })
	return out
}

const (
	cpuNow          = "metering:cpu_usage:sum_by_namespace:meta"
	cpuSum          = cpuNow + ":sum_over_time"
	cpuAverage      = cpuNow + ":avg_over_time"
	memoryTime      = "metering:memory_usage_seconds:meta"
	volumesTime     = "metering:disk_usage_seconds:meta"
	volumesMean     = "metering:persistent_volume_claims:sum_by_namespace:meta:avg_over_time"
	thisMonthSuffix = ":this_month"
)

// TestMeteringAddsUpAndAverages averages over the time in which a control plane runs, for volumes
// over the time in which they exist.
func TestMeteringAddsUpAndAverages(t *testing.T) {
	s := newMeteringServer(t)
	s.advance(10, shootUsage{cpu: 2, memory: 100, volumes: 30}.series())
	s.advance(5, shootUsage{cpu: 5, memory: 100, volumes: 60}.series())
	s.requireValues(map[string]float64{
		cpuNow: 5, cpuSum: 45, cpuAverage: 3, cpuAverage + thisMonthSuffix: 3, memoryTime: 900, memoryTime + thisMonthSuffix: 900,
		volumesTime: 900, volumesMean: 40, volumesMean + thisMonthSuffix: 40,
	})
	// The owner, the start time, and the month.
	found := s.queryAll(cpuAverage + thisMonthSuffix)
	labels := found[0].Metric.Map()
	delete(labels, "__name__")
	require.Equal(t, map[string]string{
		"shoot_uid": "1", "project": "dev", "name": "one", "namespace": "shoot--dev--one", "seed": "s", "iaas": "local", "region": "here",
		"seed_iaas": "local", "seed_region": "here", "failure_tolerance": "zone", "version": "1.34.1", "cost_object": "42", "cost_object_owner": "x",
		"is_seed": "false", "timestamp": fmt.Sprint(hourBeforeDecember.Add(time.Minute).Unix()), "year": "2026", "month": "11",
	}, labels)

	// Hibernated: volumes remain, the averages of usage do not change.
	s.advance(15, shootUsage{volumes: 60}.series())
	s.requireValues(map[string]float64{
		cpuNow: 0, cpuSum: 45, cpuAverage: 3, cpuAverage + thisMonthSuffix: 3, memoryTime: 900, memoryTime + thisMonthSuffix: 900,
		volumesTime: 1800, volumesMean: 50, volumesMean + thisMonthSuffix: 50,
	})
}

// TestNoAverageWithoutUsage: nothing is divided by zero.
func TestNoAverageWithoutUsage(t *testing.T) {
	s := newMeteringServer(t)
	s.advance(5, shootUsage{}.series())
	s.requireValues(map[string]float64{cpuSum: 0, memoryTime: 0, memoryTime + thisMonthSuffix: 0})
	s.requireEmpty(cpuAverage, cpuAverage+thisMonthSuffix, volumesMean)
}

// TestMeteringOverGaps: gaps of a seed have no limit. A Prometheus that stops for more than half an
// hour loses its sums.
func TestMeteringOverGaps(t *testing.T) {
	for _, c := range []struct {
		about   string
		gap     func(s *testPrometheus)
		minutes float64
	}{
		{"the seed is silent, shortly", func(s *testPrometheus) { s.advance(20, withoutPrefix(shootUsage{}.series(), "metering:")) }, 20},
		{"the seed is silent for longer", func(s *testPrometheus) { s.advance(35, withoutPrefix(shootUsage{}.series(), "metering:")) }, 20},
		{"Prometheus stands still, shortly", func(s *testPrometheus) { s.stopFor(20) }, 20},
		{"Prometheus stands still for longer", func(s *testPrometheus) { s.stopFor(35) }, 10},
	} {
		t.Run(c.about, func(t *testing.T) {
			s := newMeteringServer(t)
			s.advance(5, shootUsage{cpu: 2, memory: 100, volumes: 30}.series())
			s.advance(5, shootUsage{cpu: 4, memory: 100, volumes: 30}.series())
			c.gap(s)
			s.advance(10, shootUsage{cpu: 3, memory: 100, volumes: 30}.series())
			s.requireValues(map[string]float64{
				cpuSum: 3 * c.minutes, cpuAverage: 3, cpuAverage + thisMonthSuffix: 3, memoryTime: 60 * c.minutes, memoryTime + thisMonthSuffix: 60 * c.minutes,
				volumesTime + thisMonthSuffix: 60 * c.minutes, volumesMean + thisMonthSuffix: 30,
			})
		})
	}
}

// TestMeteringOfSilentSeeds: current values end, values of the month stay.
func TestMeteringOfSilentSeeds(t *testing.T) {
	s := newMeteringServer(t)
	s.advance(10, shootUsage{cpu: 2, memory: 100}.series())
	s.advance(10, withoutPrefix(shootUsage{}.series(), "metering:"))
	s.requireEmpty(cpuNow, cpuSum, cpuAverage, memoryTime)
	s.requireValues(map[string]float64{cpuAverage + thisMonthSuffix: 2, memoryTime + thisMonthSuffix: 600})
}

// TestDeletedShootsStayUntilMonthEnd checks that they do not last longer.
func TestDeletedShootsStayUntilMonthEnd(t *testing.T) {
	s := newMeteringServer(t)
	s.advance(10, shootUsage{cpu: 2, memory: 100, volumes: 30}.series())
	first := hourBeforeDecember.Add(time.Hour)
	s.advanceUntil(first, nil)
	s.requireEmpty("_garden_shoot_info", "garden_shoot_info:timestamp", cpuNow, cpuSum, cpuAverage, memoryTime, volumesTime)
	s.requireValues(map[string]float64{
		"garden_shoot_info:this_month": 0, "garden_shoot_info:timestamp:this_month": 0, cpuAverage + thisMonthSuffix: 2, memoryTime + thisMonthSuffix: 600,
		volumesTime + thisMonthSuffix: 600, volumesMean + thisMonthSuffix: 30,
	})
	s.advance(1, nil)
	require.Equal(t, first, s.now)
	s.requireEmpty("garden_shoot_info:this_month", "garden_shoot_info:timestamp:this_month", cpuAverage+thisMonthSuffix, memoryTime+thisMonthSuffix, volumesTime+thisMonthSuffix, volumesMean+thisMonthSuffix)
}

// TestMonthsFollowSeeds: samples of November from a late seed in December are added to
// November, and December begins with 0.
func TestMonthsFollowSeeds(t *testing.T) {
	s := newMeteringServer(t)
	s.advanceUntil(hourBeforeDecember.Add(time.Hour), shootUsage{cpu: 2, memory: 100}.series())
	s.requireValues(map[string]float64{cpuSum + `{month="11"}`: 118, memoryTime + thisMonthSuffix + `{month="11"}`: 59 * 60})
	s.advance(3, shootUsage{cpu: 2, memory: 100}.series())
	s.requireValues(map[string]float64{
		cpuSum + `{month="11"}`: 124, memoryTime + thisMonthSuffix + `{month="11"}`: 62 * 60,
		"garden_shoot_info:this_month": 0, // one series, of December
	})
	s.requireValues(map[string]float64{`count(garden_shoot_info:this_month{year="2026", month="12"})`: 1})
	s.advance(5, shootUsage{month: 12, cpu: 4, memory: 100}.series())
	// One series each: the series of November no longer exists.
	s.requireValues(map[string]float64{cpuSum: 20, cpuAverage: 4, cpuAverage + thisMonthSuffix: 4, memoryTime + thisMonthSuffix: 300})
	s.requireValues(map[string]float64{`count(` + cpuAverage + thisMonthSuffix + `{year="2026", month="12"})`: 1})
}

// TestYearChange: years change as months do.
func TestYearChange(t *testing.T) {
	s := newServer(t, "garden-metering-meta", time.Date(2026, 12, 31, 23, 57, 0, 0, time.UTC))
	s.advance(2, shootUsage{month: 12}.series())
	s.requireValues(map[string]float64{`garden_shoot_info:this_month{year="2026", month="12"}`: 0})
	s.advance(1, nil)
	s.requireEmpty("garden_shoot_info:this_month")
	s.advance(1, shootUsage{}.series())
	s.requireValues(map[string]float64{`count(garden_shoot_info:this_month{year="2027", month="1"})`: 1})
}

// TestChangedShootsHaveSeparateSeries: usage after a change of the shoot is in another series, and
// the earlier usage stays.
func TestChangedShootsHaveSeparateSeries(t *testing.T) {
	s := newMeteringServer(t)
	s.advance(10, shootUsage{cpu: 2, memory: 100}.series())
	s.advance(5, shootUsage{version: "1.34.2", cpu: 4, memory: 100}.series())
	s.requireValues(map[string]float64{
		`garden_shoot_info:timestamp`: 0, cpuSum: 20, cpuAverage: 4,
		cpuAverage + thisMonthSuffix + `{version="1.34.1"}`: 2, memoryTime + thisMonthSuffix + `{version="1.34.1"}`: 600,
		cpuAverage + thisMonthSuffix + `{version="1.34.2"}`: 4, memoryTime + thisMonthSuffix + `{version="1.34.2"}`: 300,
		`sum(garden_shoot_info:timestamp:this_month) + count(garden_shoot_info:timestamp:this_month)`: 2,
	})
	// A gap of the exporter does not change the start time.
	since := s.queryAll("garden_shoot_info:timestamp")[0].Metric.Get("timestamp")
	s.advance(10, withoutPrefix(shootUsage{version: "1.34.2", cpu: 4, memory: 100}.series(), "garden_shoot_info"))
	s.requireEmpty("garden_shoot_info:timestamp")
	s.advance(5, shootUsage{version: "1.34.2", cpu: 4, memory: 100}.series())
	s.requireValues(map[string]float64{"garden_shoot_info:timestamp": 0, cpuSum: 40})
	require.Equal(t, since, s.queryAll("garden_shoot_info:timestamp")[0].Metric.Get("timestamp"))
}

// TestNodesAreMetered: nodes are metered by the number of samples.
func TestNodesAreMetered(t *testing.T) {
	for _, what := range []string{"node_capacity", "node_cp_usage", "node_cp_requests"} {
		t.Run(what, func(t *testing.T) {
			name := "metering:" + what + ":sum_by_instance_type"
			sum, count, average := name+":sum_over_time", name+":count_over_time", name+":avg_over_time"
			of := func(month int, v float64) map[string]float64 {
				return map[string]float64{fmt.Sprintf(`%s{seed="s", instance_type="m", resource="cpu", year="2026", month="%d"}`, name, month): v}
			}
			s := newMeteringServer(t)
			s.advance(5, of(11, 8))
			s.advance(5, of(11, 0)) // zero nodes are a sample, too
			s.requireValues(map[string]float64{sum: 40, count: 10, average: 4, count + thisMonthSuffix: 10, average + thisMonthSuffix: 4})
			s.advance(40, nil)
			s.requireEmpty(sum, count, average)
			s.requireValues(map[string]float64{count + thisMonthSuffix: 10, average + thisMonthSuffix: 4})
			s.advance(2, of(11, 4))
			s.requireValues(map[string]float64{sum: 48, count: 12, average: 4, count + thisMonthSuffix: 12, average + thisMonthSuffix: 4})
			s.advanceUntil(hourBeforeDecember.Add(time.Hour), nil)
			s.requireValues(map[string]float64{count + thisMonthSuffix: 12, average + thisMonthSuffix: 4})
			s.advance(3, of(12, 2))
			s.requireValues(map[string]float64{sum: 6, count: 3, average: 2, count + thisMonthSuffix: 3, average + thisMonthSuffix: 2})
		})
	}
}
