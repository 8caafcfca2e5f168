package landscape

import "github.com/pergola-dev/pergola/controllers/owner"

// Part of a landscape. The zero value is all of it.
type Part struct {
	operator bool
	seed     string
}

// PartOperator is what gardener-operator does: what Git declares, and the Garden. No seed is contacted.
func PartOperator() Part { return Part{operator: true} }

// PartSeed is what a gardenlet does: one Seed with its Shoots.
func PartSeed(name string) Part { return Part{seed: name} }

// owners are the kinds of owners that the part has, in the form of render.OwnersOf.
func (p Part) owners() []string {
	if p.operator {
		return []string{owner.Garden}
	}
	return nil
}

// has tells whether an owner belongs to the part; cluster is where its components run.
func (p Part) has(kind, cluster string) bool {
	switch {
	case p.operator:
		return kind == owner.Garden
	case p.seed != "":
		return kind != owner.Garden && cluster == p.seed
	}
	return true
}
