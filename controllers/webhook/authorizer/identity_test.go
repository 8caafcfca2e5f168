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
		{"gardener.cloud:system:seed:a", []string{groupSeeds}, "a", asGardenlet, "", asNobody, false},
		{"gardener.cloud:system:seed:a.b-c", []string{"x", groupSeeds}, "a.b-c", asGardenlet, "", asNobody, false},
		{"gardener.cloud:system:seed:a", []string{"x"}, "", asNobody, "", asNobody, false},
		{"gardener.cloud:system:seed:", []string{groupSeeds}, "", asNobody, "", asNobody, true},
		{"gardener.cloud:system:seed:a:b", []string{groupSeeds}, "", asNobody, "", asNobody, true},
		{"gardener.cloud:system:seed:../a", []string{groupSeeds}, "", asNobody, "", asNobody, true},
		{"admin", []string{groupSeeds}, "", asNobody, "", asNobody, true},
		{"admin", []string{"system:masters"}, "", asNobody, "", asNobody, false},

		{"system:serviceaccount:seed-a:extension-x", accounts("seed-a"), "a", asExtension, "", asNobody, false},
		{"system:serviceaccount:seed-a:default", accounts("seed-a"), "", asNobody, "", asNobody, false},
		{"system:serviceaccount:seed-a:extension-x", accounts("seed-b"), "", asNobody, "", asNobody, false},
		{"system:serviceaccount:seed-a:extension-x", []string{"system:serviceaccounts:seed-a"}, "", asNobody, "", asNobody, false},
		{"system:serviceaccount:seed-:extension-x", accounts("seed-"), "", asNobody, "", asNobody, false},
		{"system:serviceaccount:garden:gardenlet-a", accounts("garden"), "a", asGardenlet, "", asNobody, false},
		{"system:serviceaccount:garden:gardenlet-bootstrap-a", accounts("garden"), "", asNobody, "", asNobody, false},
		{"system:serviceaccount:garden:gardenlet-", accounts("garden"), "", asNobody, "", asNobody, false},
		{"system:serviceaccount:garden-one:gardenlet-a", accounts("garden-one"), "", asNobody, "", asNobody, false},
		{"system:serviceaccount:default:extension-x", accounts("default"), "", asNobody, "", asNobody, false},

		{"gardener.cloud:system:shoot:n:s", []string{groupShoots}, "", asNobody, "n/s", asGardenlet, false},
		{"gardener.cloud:gardenadm:shoot:n:s", []string{groupShoots}, "", asNobody, "n/s", asGardenadm, false},
		{"gardener.cloud:system:shoot:n", []string{groupShoots}, "", asNobody, "", asNobody, true},
		{"gardener.cloud:system:shoot:n:s:x", []string{groupShoots}, "", asNobody, "", asNobody, true},
		{"gardener.cloud:system:shoot::s", []string{groupShoots}, "", asNobody, "", asNobody, true},
		{"admin", []string{groupShoots}, "", asNobody, "", asNobody, true},
		{"system:serviceaccount:garden-one:extension-shoot--s--x", accounts("garden-one"), "", asNobody, "garden-one/s", asExtension, false},
		{"system:serviceaccount:garden:extension-shoot--s--x--y", accounts("garden"), "", asNobody, "garden/s", asExtension, false},
		{"system:serviceaccount:garden-one:extension-shoot--s", accounts("garden-one"), "", asNobody, "", asNobody, false},
		{"system:serviceaccount:garden-one:extension-shoot----x", accounts("garden-one"), "", asNobody, "", asNobody, false},
		{"system:serviceaccount:other:extension-shoot--s--x", accounts("other"), "", asNobody, "", asNobody, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			who := requester{c.name, c.groups}
			seed, as, problem := who.ofSeed()
			assert.Equal(t, c.seed, seed)
			assert.Equal(t, c.asSeed, as)
			shoot, asShoot, problem2 := who.ofShoot()
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
