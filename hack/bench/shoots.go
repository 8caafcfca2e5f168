// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
)

// shoot has the fields that differ between Shoots. The manifest has no empty, zero or false fields.
type shoot struct {
	Name     string
	Revision int
	Project  project
	Seed     seed

	Purpose, Tolerance, Contact    string
	CostCenter, Ticket, Delay      int
	Gateways, Inflight, EventHours int
	SSHOff, OwnDomain              bool

	Version, ProxyMode, Expander               string
	Audit, Authentication, VPA, UpdateVersion  bool
	UpdateImage                                bool
	ScaleDown, Threshold, PullRate, PullBurst  int
	Network, Nodes, Pods, Services, Begin, End string
	Typha, LocalDNS                            bool
	DNSScaling                                 string
	Pools                                      []pool
	Schedules                                  []schedule
	Receivers                                  []string
}

// pool is a worker pool.
type pool struct {
	Name, Machine, Architecture, Image, ImageVersion string
	VolumeType, MaxSurge, Tier, Taint                string
	Minimum, Maximum, VolumeSize                     int
	MaxPods, Eviction, Reserved                      int
	Backlog, DrainMinutes                            int
	System                                           bool
	Zones                                            []string
}

// schedule is a hibernation schedule.
type schedule struct{ Start, End, Location string }

// dice is a random generator that is reproducible for each Shoot.
type dice struct{ *rand.Rand }

func newDice(i int) dice { return dice{rand.New(rand.NewPCG(uint64(i), 0))} }

func (d dice) pick(list ...string) string { return list[d.IntN(len(list))] }

// chance returns true in so many percent of all cases.
func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

// between returns a number from least to most, both included.
func (d dice) between(least, most int) int { return least + d.IntN(most-least+1) }

// newShoot describes the Shoot of a number. The revision is a label and affects nothing else.
func newShoot(i, revision int, seeds []seed, projects []project) shoot {
	d := newDice(i)
	square := d.Float64() * d.Float64() // few projects have many Shoots
	x := shoot{
		Name: fmt.Sprintf("%s-%05d", d.pick("app", "core", "edge", "job", "lab"), i), Revision: revision,
		Project: projects[int(square*float64(len(projects)))], Seed: seeds[d.IntN(len(seeds))],
		Contact: d.pick("ops", "dev", "oncall", "lead"), CostCenter: d.between(1000, 9999),
		Gateways: d.between(1, 3), EventHours: d.between(1, 24), SSHOff: d.chance(60), OwnDomain: d.chance(25),
		Version: d.pick("1.35.0", "1.34.2", "1.34.2", "1.34.1", "1.33.6", "1.33.5"), ProxyMode: d.pick("IPTables", "IPTables", "IPVS"),
		Audit: d.chance(40), Authentication: d.chance(30), VPA: d.chance(80), UpdateVersion: d.chance(70), UpdateImage: d.chance(90),
		PullRate: d.between(5, 20), PullBurst: d.between(20, 60),
		Network: d.pick("calico", "calico", "cilium"), Typha: d.chance(50), LocalDNS: d.chance(50), DNSScaling: d.pick("horizontal", "cluster-proportional"),
	}
	if d.chance(30) {
		x.Ticket = d.between(1, 99999)
	}
	if d.chance(20) {
		x.Delay = d.between(0, 12) * 100
	}
	if d.chance(25) {
		x.Inflight = d.between(4, 20) * 100
	}
	if d.chance(60) {
		x.ScaleDown, x.Threshold, x.Expander = d.between(10, 90), d.between(3, 8), d.pick("least-waste", "most-pods", "random")
	}
	for k := range d.IntN(3) {
		x.Receivers = append(x.Receivers, fmt.Sprintf("%s-alerts-%d@example.com", x.Project.Team, k))
	}
	x.setPurpose(d)
	x.setNetworks(d)
	x.setTimes(d)
	for k := range d.between(1, 4) {
		x.Pools = append(x.Pools, newPool(d, k, x.Seed.Region))
	}
	return x
}

func (x *shoot) setPurpose(d dice) {
	switch x.Project.Stage {
	case "prd":
		x.Purpose, x.Tolerance = "production", d.pick("zone", "node", "")
	case "pre", "int":
		x.Purpose, x.Tolerance = d.pick("production", "development"), d.pick("", "", "node")
	default:
		x.Purpose = d.pick("development", "evaluation", "testing")
	}
}

// setNetworks chooses networks that do not overlap with Seeds (10.100.0.0/16 to 10.179.0.0/16) or
// the runtime cluster.
func (x *shoot) setNetworks(d dice) {
	switch d.IntN(3) {
	case 0:
		x.Nodes = fmt.Sprintf("10.%d.0.0/16", d.between(180, 250))
	case 1:
		x.Nodes = fmt.Sprintf("10.%d.%d.0/18", d.between(180, 250), 64*d.IntN(4))
	default:
		x.Nodes = fmt.Sprintf("192.168.%d.0/20", 16*d.IntN(16))
	}
	if d.chance(60) { // the others take the defaults of their seed
		x.Pods = d.pick("100.96.0.0/11", "100.112.0.0/12", "10.16.0.0/12", "10.48.0.0/12")
		x.Services = d.pick("100.72.0.0/13", "100.80.0.0/16", "10.32.0.0/16", "10.40.0.0/18")
	}
}

// setTimes sets maintenance and, for Shoots that are not productive, hibernation.
func (x *shoot) setTimes(d dice) {
	begin, zone := d.IntN(24), d.pick("+0000", "+0100", "+0530", "-0500", "-0800")
	x.Begin = fmt.Sprintf("%02d0000%s", begin, zone)
	x.End = fmt.Sprintf("%02d%02d00%s", (begin+d.between(1, 3))%24, 30*d.IntN(2), zone)
	if x.Purpose == "production" || !d.chance(60) {
		return
	}
	location := d.pick("Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC")
	x.Schedules = append(x.Schedules, schedule{fmt.Sprintf("%d %d * * 1-5", d.IntN(60), d.between(18, 23)), fmt.Sprintf("%d %d * * 1-5", d.IntN(60), d.between(5, 9)), location})
	if d.chance(20) {
		x.Schedules = append(x.Schedules, schedule{fmt.Sprintf("0 %d * * 0,6", d.between(12, 16)), fmt.Sprintf("0 %d * * 0,6", d.between(7, 10)), location})
	}
}

// newPool describes one pool of a Shoot. The first carries the system components.
func newPool(d dice, k int, region string) pool {
	p := pool{
		Name: fmt.Sprintf("%s-%d", d.pick("general", "system", "batch", "web", "gpu", "db"), k), System: k == 0,
		Machine: d.pick("c-4", "c-8", "m-8", "m-16", "g-8", "a-4"), Architecture: "amd64", Image: "gardenlinux", ImageVersion: d.pick("1877.4.0", "1592.9.0"),
		VolumeType: d.pick("standard", "fast"), VolumeSize: 10 * d.between(5, 30), MaxSurge: d.pick("1", "2", "3", "25%"),
		Tier: d.pick("gold", "silver", "bronze"),
	}
	if p.Machine == "a-4" {
		p.Architecture = "arm64"
	} else if d.chance(20) {
		p.Image, p.ImageVersion = "ubuntu", "24.4.3"
	}
	first, count := d.IntN(3), d.between(1, 3)
	for z := range count {
		p.Zones = append(p.Zones, fmt.Sprintf("%s-%c", region, 'a'+(first+z)%3))
	}
	p.Minimum = d.between(3, 6)
	if k > 0 {
		p.Minimum = d.between(0, 6)
		p.Taint = d.pick("NoSchedule", "PreferNoSchedule", "NoExecute", "", "", "")
	}
	p.Maximum = p.Minimum + d.between(1, 40)
	if d.chance(40) {
		p.MaxPods, p.Eviction, p.Reserved = 10*d.between(5, 20), 50*d.between(2, 10), 20*d.between(4, 10)
	}
	if d.chance(15) {
		p.Backlog = 1024 * d.between(1, 60)
	}
	if d.chance(30) {
		p.DrainMinutes = d.between(10, 240)
	}
	return p
}
