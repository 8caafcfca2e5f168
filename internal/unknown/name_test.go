// SPDX-License-Identifier: Apache-2.0

package unknown

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNameError(t *testing.T) {
	components := []string{"garden/etcd-druid", "garden/vpa", "seed/etcd-druid", "seed/vpa", "shoot/vpa", "shoot/coredns"}
	clusters := []string{"runtime", "virtual", "local", "shoot garden-local/local"}
	many := numberedNames("seed/s%02d", 20)
	for _, test := range []struct {
		name  string
		known []string
		want  string
	}{
		{"garden/vap", components, `there is no thing "garden/vap"; did you mean "garden/vpa"?; want one of garden/etcd-druid, garden/vpa, seed/etcd-druid, seed/vpa, shoot/vpa, shoot/coredns`},
		{"garden/nope", components, `there is no thing "garden/nope"; want one of garden/etcd-druid, garden/vpa, seed/etcd-druid, seed/vpa, shoot/vpa, shoot/coredns`},
		{"vpa", components[:5], `there is no thing "vpa"; did you mean "garden/vpa" or "seed/vpa" or "shoot/vpa"?; want one of garden/etcd-druid, garden/vpa, seed/etcd-druid, seed/vpa, shoot/vpa`},
		{"Runtime", clusters, `there is no thing "Runtime"; did you mean "runtime"?; want one of runtime, virtual, local, shoot garden-local/local`},
		{"shoot local", clusters, `there is no thing "shoot local"; did you mean "shoot garden-local/local"?; want one of runtime, virtual, local, shoot garden-local/local`},
		{"nowhere", clusters, `there is no thing "nowhere"; want one of runtime, virtual, local, shoot garden-local/local`},
		{"", clusters, `there is no thing ""; want one of runtime, virtual, local, shoot garden-local/local`},
		{"s7", nil, `there is no thing "s7": there is none`},
		{"s07", many, `there is no thing "s07"; did you mean "seed/s07"?`},
		{"moon", many, `there is no thing "moon"; want one of seed/s00, seed/s01, seed/s02, seed/s03, seed/s04, seed/s05, seed/s06, seed/s07, seed/s08, seed/s09, seed/s10, seed/s11, 8 more`},
	} {
		assert.EqualError(t, NameError("thing", test.name, test.known), test.want)
	}
}

func TestSimilar(t *testing.T) {
	components := []string{"garden/etcd-druid", "garden/vpa", "seed/etcd-druid", "seed/vpa", "shoot/vpa", "shoot/coredns"}
	owners := []string{"garden local", "seed local", "shoot garden-local/local", "shoot garden-dev/other"}
	for _, test := range []struct {
		name  string
		known []string
		want  []string
	}{
		{"coredns", components, []string{"shoot/coredns"}},
		{"CoreDNS", components, []string{"shoot/coredns"}},
		{"cordns", components, []string{"shoot/coredns"}},
		{"components/seed/vpa", components, []string{"seed/vpa"}},
		{"seeds/etcd-druid", components, []string{"seed/etcd-druid"}},
		{"extension/coredns", components, []string{"shoot/coredns"}},
		{"etcd-drud", components, []string{"garden/etcd-druid", "seed/etcd-druid"}},
		{"garden-local/local", owners, []string{"shoot garden-local/local"}},
		{"local", owners, []string{"garden local", "seed local", "shoot garden-local/local"}},
		{"shoot/locl", owners, []string{"shoot garden-local/local"}},
		{"seed/etcd-drudi", components, []string{"seed/etcd-druid"}},
		{"shoot/other", owners, []string{"shoot garden-dev/other"}},
		{"/", owners, nil},
		{"nobody", owners, nil},
		{"", owners, nil},
		{"vpa", []string{"shoot/vpa", "shoot/vpa"}, []string{"shoot/vpa"}},
	} {
		assert.Equal(t, test.want, Similar(test.name, test.known), test.name)
	}
}

func numberedNames(format string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}
