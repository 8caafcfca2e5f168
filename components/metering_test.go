package components_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// late is one hour before the end of November, for the rules of garden-metering-meta on metrics of
// the garden and of its seeds.
var late = time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)

func metered(t *testing.T) *server { return newServer(t, "garden-metering-meta", late) }

// used is the usage of a shoot, as reported by gardener-metrics-exporter and the seed.
type used struct {
	month                int
	version              string
	cpu, memory, volumes float64
}

func (u used) series() map[string]float64 {
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

// without removes series by the prefix of their names.
func without(series map[string]float64, prefix string) map[string]float64 {
	out := maps.Clone(series)
	maps.DeleteFunc(out, func(name string, _ float64) bool { return len(name) >= len(prefix) && name[:len(prefix)] == prefix })
	return out
}

const (
	cpuNow      = "metering:cpu_usage:sum_by_namespace:meta"
	cpuSum      = cpuNow + ":sum_over_time"
	cpuAverage  = cpuNow + ":avg_over_time"
	memoryTime  = "metering:memory_usage_seconds:meta"
	volumesTime = "metering:disk_usage_seconds:meta"
	volumesMean = "metering:persistent_volume_claims:sum_by_namespace:meta:avg_over_time"
	lasts       = ":this_month"
)

// TestMeteringAddsUpAndAverages averages over the time in which a control plane runs, for volumes
// over the time in which they exist.
func TestMeteringAddsUpAndAverages(t *testing.T) {
	s := metered(t)
	s.minutes(10, used{cpu: 2, memory: 100, volumes: 30}.series())
	s.minutes(5, used{cpu: 5, memory: 100, volumes: 60}.series())
	s.expect(map[string]float64{
		cpuNow: 5, cpuSum: 45, cpuAverage: 3, cpuAverage + lasts: 3, memoryTime: 900, memoryTime + lasts: 900,
		volumesTime: 900, volumesMean: 40, volumesMean + lasts: 40,
	})
	// The owner, the start time, and the month.
	found := s.all(cpuAverage + lasts)
	labels := found[0].Metric.Map()
	delete(labels, "__name__")
	require.Equal(t, map[string]string{
		"shoot_uid": "1", "project": "dev", "name": "one", "namespace": "shoot--dev--one", "seed": "s", "iaas": "local", "region": "here",
		"seed_iaas": "local", "seed_region": "here", "failure_tolerance": "zone", "version": "1.34.1", "cost_object": "42", "cost_object_owner": "x",
		"is_seed": "false", "timestamp": fmt.Sprint(late.Add(time.Minute).Unix()), "year": "2026", "month": "11",
	}, labels)

	// Hibernated: volumes remain, the averages of usage do not change.
	s.minutes(15, used{volumes: 60}.series())
	s.expect(map[string]float64{
		cpuNow: 0, cpuSum: 45, cpuAverage: 3, cpuAverage + lasts: 3, memoryTime: 900, memoryTime + lasts: 900,
		volumesTime: 1800, volumesMean: 50, volumesMean + lasts: 50,
	})
}

// TestWhatNeverRanHasNoAverage: nothing is divided by zero.
func TestWhatNeverRanHasNoAverage(t *testing.T) {
	s := metered(t)
	s.minutes(5, used{}.series())
	s.expect(map[string]float64{cpuSum: 0, memoryTime: 0, memoryTime + lasts: 0})
	s.none(cpuAverage, cpuAverage+lasts, volumesMean)
}

// TestMeteringOverGaps: gaps of a seed have no limit. A Prometheus that stops for more than half an
// hour loses its sums.
func TestMeteringOverGaps(t *testing.T) {
	for _, c := range []struct {
		about   string
		gap     func(s *server)
		minutes float64
	}{
		{"the seed is silent, shortly", func(s *server) { s.minutes(20, without(used{}.series(), "metering:")) }, 20},
		{"the seed is silent for longer", func(s *server) { s.minutes(35, without(used{}.series(), "metering:")) }, 20},
		{"Prometheus stands still, shortly", func(s *server) { s.stopped(20) }, 20},
		{"Prometheus stands still for longer", func(s *server) { s.stopped(35) }, 10},
	} {
		t.Run(c.about, func(t *testing.T) {
			s := metered(t)
			s.minutes(5, used{cpu: 2, memory: 100, volumes: 30}.series())
			s.minutes(5, used{cpu: 4, memory: 100, volumes: 30}.series())
			c.gap(s)
			s.minutes(10, used{cpu: 3, memory: 100, volumes: 30}.series())
			s.expect(map[string]float64{
				cpuSum: 3 * c.minutes, cpuAverage: 3, cpuAverage + lasts: 3, memoryTime: 60 * c.minutes, memoryTime + lasts: 60 * c.minutes,
				volumesTime + lasts: 60 * c.minutes, volumesMean + lasts: 30,
			})
		})
	}
}

// TestSeedsThatAreSilent: current values end, values of the month stay.
func TestSeedsThatAreSilent(t *testing.T) {
	s := metered(t)
	s.minutes(10, used{cpu: 2, memory: 100}.series())
	s.minutes(10, without(used{}.series(), "metering:"))
	s.none(cpuNow, cpuSum, cpuAverage, memoryTime)
	s.expect(map[string]float64{cpuAverage + lasts: 2, memoryTime + lasts: 600})
}

// TestDeletedShootsLastToTheEndOfTheMonth checks that they do not last longer.
func TestDeletedShootsLastToTheEndOfTheMonth(t *testing.T) {
	s := metered(t)
	s.minutes(10, used{cpu: 2, memory: 100, volumes: 30}.series())
	first := late.Add(time.Hour)
	s.until(first, nil)
	s.none("_garden_shoot_info", "garden_shoot_info:timestamp", cpuNow, cpuSum, cpuAverage, memoryTime, volumesTime)
	s.expect(map[string]float64{
		"garden_shoot_info:this_month": 0, "garden_shoot_info:timestamp:this_month": 0, cpuAverage + lasts: 2, memoryTime + lasts: 600,
		volumesTime + lasts: 600, volumesMean + lasts: 30,
	})
	s.minutes(1, nil)
	require.Equal(t, first, s.now)
	s.none("garden_shoot_info:this_month", "garden_shoot_info:timestamp:this_month", cpuAverage+lasts, memoryTime+lasts, volumesTime+lasts, volumesMean+lasts)
}

// TestMonthsAreThoseOfSeeds: samples of November from a late seed in December are added to
// November, and December begins with 0.
func TestMonthsAreThoseOfSeeds(t *testing.T) {
	s := metered(t)
	s.until(late.Add(time.Hour), used{cpu: 2, memory: 100}.series())
	s.expect(map[string]float64{cpuSum + `{month="11"}`: 118, memoryTime + lasts + `{month="11"}`: 59 * 60})
	s.minutes(3, used{cpu: 2, memory: 100}.series())
	s.expect(map[string]float64{
		cpuSum + `{month="11"}`: 124, memoryTime + lasts + `{month="11"}`: 62 * 60,
		"garden_shoot_info:this_month": 0, // one series, of December
	})
	s.expect(map[string]float64{`count(garden_shoot_info:this_month{year="2026", month="12"})`: 1})
	s.minutes(5, used{month: 12, cpu: 4, memory: 100}.series())
	// One series each: the series of November no longer exists.
	s.expect(map[string]float64{cpuSum: 20, cpuAverage: 4, cpuAverage + lasts: 4, memoryTime + lasts: 300})
	s.expect(map[string]float64{`count(` + cpuAverage + lasts + `{year="2026", month="12"})`: 1})
}

// TestYearsChange: years change as months do.
func TestYearsChange(t *testing.T) {
	s := newServer(t, "garden-metering-meta", time.Date(2026, 12, 31, 23, 57, 0, 0, time.UTC))
	s.minutes(2, used{month: 12}.series())
	s.expect(map[string]float64{`garden_shoot_info:this_month{year="2026", month="12"}`: 0})
	s.minutes(1, nil)
	s.none("garden_shoot_info:this_month")
	s.minutes(1, used{}.series())
	s.expect(map[string]float64{`count(garden_shoot_info:this_month{year="2027", month="1"})`: 1})
}

// TestShootsThatChangeAreToldApart: usage after a change of the shoot is in another series, and the
// earlier usage stays.
func TestShootsThatChangeAreToldApart(t *testing.T) {
	s := metered(t)
	s.minutes(10, used{cpu: 2, memory: 100}.series())
	s.minutes(5, used{version: "1.34.2", cpu: 4, memory: 100}.series())
	s.expect(map[string]float64{
		`garden_shoot_info:timestamp`: 0, cpuSum: 20, cpuAverage: 4,
		cpuAverage + lasts + `{version="1.34.1"}`: 2, memoryTime + lasts + `{version="1.34.1"}`: 600,
		cpuAverage + lasts + `{version="1.34.2"}`: 4, memoryTime + lasts + `{version="1.34.2"}`: 300,
		`sum(garden_shoot_info:timestamp:this_month) + count(garden_shoot_info:timestamp:this_month)`: 2,
	})
	// A gap of the exporter does not change the start time.
	since := s.all("garden_shoot_info:timestamp")[0].Metric.Get("timestamp")
	s.minutes(10, without(used{version: "1.34.2", cpu: 4, memory: 100}.series(), "garden_shoot_info"))
	s.none("garden_shoot_info:timestamp")
	s.minutes(5, used{version: "1.34.2", cpu: 4, memory: 100}.series())
	s.expect(map[string]float64{"garden_shoot_info:timestamp": 0, cpuSum: 40})
	require.Equal(t, since, s.all("garden_shoot_info:timestamp")[0].Metric.Get("timestamp"))
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
			s := metered(t)
			s.minutes(5, of(11, 8))
			s.minutes(5, of(11, 0)) // zero nodes are a sample, too
			s.expect(map[string]float64{sum: 40, count: 10, average: 4, count + lasts: 10, average + lasts: 4})
			s.minutes(40, nil)
			s.none(sum, count, average)
			s.expect(map[string]float64{count + lasts: 10, average + lasts: 4})
			s.minutes(2, of(11, 4))
			s.expect(map[string]float64{sum: 48, count: 12, average: 4, count + lasts: 12, average + lasts: 4})
			s.until(late.Add(time.Hour), nil)
			s.expect(map[string]float64{count + lasts: 12, average + lasts: 4})
			s.minutes(3, of(12, 2))
			s.expect(map[string]float64{sum: 6, count: 3, average: 2, count + lasts: 3, average + lasts: 2})
		})
	}
}
