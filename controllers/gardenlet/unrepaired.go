package gardenlet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
)

// mostUnrepaired is of how many objects of an owner it is told one by one that they are not
// repaired. It is below the 25 Events of an object that client-go sends in a row.
const mostUnrepaired = 20

// unrepaired is what was told of objects that are not repaired, by the owner they are of. All of
// them are tried again and again, and each is told once as long as nothing changes with it.
type unrepaired map[types.UID]map[drifting]string

// drifting is an object of a set; the empty one stands for all beyond mostUnrepaired.
type drifting struct {
	cluster, set string
	ref          apply.Ref
}

// news is what is to be told of an object that is not repaired; empty when it was told.
func (u *unrepaired) news(of types.UID, e apply.DriftEvent, message string) string {
	if *u == nil {
		*u = unrepaired{}
	}
	told := (*u)[of]
	if told == nil {
		told = map[drifting]string{}
		(*u)[of] = told
	}
	one := drifting{e.Cluster, e.Set, e.Ref}
	if _, there := told[one]; !there && len(told) >= mostUnrepaired {
		one, message = drifting{}, fmt.Sprintf("more than %d objects are not repaired; the others are told once there are fewer", mostUnrepaired)
	}
	if told[one] == message {
		return ""
	}
	told[one] = message
	return message
}

// repaired notes that the set of an object was applied: whatever changes in it now is told anew.
func (u *unrepaired) repaired(of types.UID, e apply.DriftEvent) {
	told := (*u)[of]
	for one := range told {
		if one.cluster == e.Cluster && one.set == e.Set {
			delete(told, one)
			delete(told, drifting{}) // there is room for others
		}
	}
	if len(told) == 0 {
		delete(*u, of)
	}
}
