// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIdentities(t *testing.T) {
	accounts := func(namespace string) []string {
		return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
	}
	for _, c := range []struct {
		name    string
		groups  []string
		seed    string
		asSeed  role
		shoot   string
		asShoot role
		problem bool
	}{
		{"gardener.cloud:system:seed:a", []string{groupSeeds}, "a", roleGardenlet, "", roleNone, false},
		{"gardener.cloud:system:seed:a.b-c", []string{"x", groupSeeds}, "a.b-c", roleGardenlet, "", roleNone, false},
		{"gardener.cloud:system:seed:a", []string{"x"}, "", roleNone, "", roleNone, false},
		{"gardener.cloud:system:seed:", []string{groupSeeds}, "", roleNone, "", roleNone, true},
		{"gardener.cloud:system:seed:a:b", []string{groupSeeds}, "", roleNone, "", roleNone, true},
		{"gardener.cloud:system:seed:../a", []string{groupSeeds}, "", roleNone, "", roleNone, true},
		{"admin", []string{groupSeeds}, "", roleNone, "", roleNone, true},
		{"admin", []string{"system:masters"}, "", roleNone, "", roleNone, false},

		{"system:serviceaccount:seed-a:extension-x", accounts("seed-a"), "a", roleExtension, "", roleNone, false},
		{"system:serviceaccount:seed-a:default", accounts("seed-a"), "", roleNone, "", roleNone, false},
		{"system:serviceaccount:seed-a:extension-x", accounts("seed-b"), "", roleNone, "", roleNone, false},
		{"system:serviceaccount:seed-a:extension-x", []string{"system:serviceaccounts:seed-a"}, "", roleNone, "", roleNone, false},
		{"system:serviceaccount:seed-:extension-x", accounts("seed-"), "", roleNone, "", roleNone, false},
		{"system:serviceaccount:garden:gardenlet-a", accounts("garden"), "a", roleGardenlet, "", roleNone, false},
		{"system:serviceaccount:garden:gardenlet-bootstrap-a", accounts("garden"), "", roleNone, "", roleNone, false},
		{"system:serviceaccount:garden:gardenlet-", accounts("garden"), "", roleNone, "", roleNone, false},
		{"system:serviceaccount:garden-one:gardenlet-a", accounts("garden-one"), "", roleNone, "", roleNone, false},
		{"system:serviceaccount:default:extension-x", accounts("default"), "", roleNone, "", roleNone, false},

		{"gardener.cloud:system:shoot:n:s", []string{groupShoots}, "", roleNone, "n/s", roleGardenlet, false},
		{"gardener.cloud:gardenadm:shoot:n:s", []string{groupShoots}, "", roleNone, "n/s", roleGardenadm, false},
		{"gardener.cloud:system:shoot:n", []string{groupShoots}, "", roleNone, "", roleNone, true},
		{"gardener.cloud:system:shoot:n:s:x", []string{groupShoots}, "", roleNone, "", roleNone, true},
		{"gardener.cloud:system:shoot::s", []string{groupShoots}, "", roleNone, "", roleNone, true},
		{"admin", []string{groupShoots}, "", roleNone, "", roleNone, true},
		{"system:serviceaccount:garden-one:extension-shoot--s--x", accounts("garden-one"), "", roleNone, "garden-one/s", roleExtension, false},
		{"system:serviceaccount:garden:extension-shoot--s--x--y", accounts("garden"), "", roleNone, "garden/s", roleExtension, false},
		{"system:serviceaccount:garden-one:extension-shoot--s", accounts("garden-one"), "", roleNone, "", roleNone, false},
		{"system:serviceaccount:garden-one:extension-shoot----x", accounts("garden-one"), "", roleNone, "", roleNone, false},
		{"system:serviceaccount:other:extension-shoot--s--x", accounts("other"), "", roleNone, "", roleNone, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			who := requester{c.name, c.groups}
			seed, as, problem := who.seedRole()
			assert.Equal(t, c.seed, seed)
			assert.Equal(t, c.asSeed, as)
			shoot, asShoot, problem2 := who.shootRole()
			got := ""
			if shoot.name != "" {
				got = shoot.namespace + "/" + shoot.name
			}
			assert.Equal(t, c.shoot, got)
			assert.Equal(t, c.asShoot, asShoot)
			assert.Equal(t, c.problem, problem+problem2 != "")
		})
	}
}
