package permit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Approvals are the ids that people have given to one keeper of clusters, the operator or a
// gardenlet, and those of them that are used. The id of held objects follows from the objects
// alone, so that a difference before the merge and the cluster give the same one. It counts once:
// the second time that it is needed people get it with -2 at its end, then with -3. Both lists have
// the ids as people give them.
type Approvals struct{ Given, Used []string }

// GivenTo are the ids that people have given to the gardenlet of a seed, as SEED/ID, or with no
// seed to the operator. Everyone who knows the names of objects can compute an id, so that an
// approval counts where it was given and nowhere else.
func GivenTo(seed string, given []string) (out []string) {
	for _, text := range given {
		at, id, onSeed := strings.Cut(text, "/")
		switch {
		case onSeed && seed != "" && at == seed:
			out = append(out, id)
		case !onSeed && seed == "":
			out = append(out, text)
		}
	}
	return out
}

// Plain is an id without the number that people get it with.
func Plain(shown string) string {
	id, _, _ := strings.Cut(shown, "-")
	return id
}

// Shown is the id that people approve something by: one that was not used. It is empty for no id.
func (a Approvals) Shown(id string) string {
	shown := id
	for n := 2; id != "" && slices.Contains(a.Used, shown); n++ {
		shown = fmt.Sprintf("%s-%d", id, n)
	}
	return shown
}

// Counts gives an id as people give it now, and reports whether they have given it.
func (a Approvals) Counts(id string) (shown string, counts bool) {
	shown = a.Shown(id)
	return shown, slices.Contains(a.Given, shown)
}

// Unused reports whether people have given an id, as they give it, that is not used yet.
func (a Approvals) Unused(shown string) bool {
	return slices.Contains(a.Given, shown) && !slices.Contains(a.Used, shown)
}

// Open are the ids, without numbers, by which the gate lets something pass.
func (a Approvals) Open() (out []string) {
	for _, given := range a.Given {
		if given == a.Shown(Plain(given)) {
			out = append(out, Plain(given))
		}
	}
	return out
}

// Forget leaves out the used ids that are not given any more: they can be given anew.
func (a Approvals) Forget() Approvals {
	a.Used = slices.DeleteFunc(slices.Clone(a.Used), func(id string) bool { return !slices.Contains(a.Given, id) })
	return a
}

// Lapsed are the approvals that let nothing pass now: their object, or their set as a whole, is not
// held any more, by the Plain ids of held. Kept for later they would let objects pass that nobody
// has seen held.
func (a Approvals) Lapsed(held map[string]bool) (out []string) {
	for _, id := range a.Given {
		if !held[Plain(id)] && a.Unused(id) {
			out = append(out, id)
		}
	}
	return out
}

// Lapse gives the ids that have lapsed for one owner after a run that has seen everything. These
// are the ids of objects that were held before, unless the objects passed by them, and the ids that
// had lapsed before the run. An id of objects that are held now has not lapsed.
func Lapse(lapsed, before, now, passed map[string]bool) map[string]bool {
	out := map[string]bool{}
	maps.Copy(out, before)
	maps.DeleteFunc(out, func(id string, _ bool) bool { return passed[id] })
	maps.Copy(out, lapsed)
	maps.DeleteFunc(out, func(id string, _ bool) bool { return now[id] })
	return out
}
