package gardenlet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
)

// mostUnrepaired limits the unrepaired objects of an owner that are reported individually. It is
// below client-go's burst of 25 Events per object.
const mostUnrepaired = 20

// unrepaired holds the reports about unrepaired objects by owner. Each repair is retried, but each
// object is reported once until its message changes.
type unrepaired map[types.UID]map[drifting]string

// drifting is an object of a set; the zero value represents all objects beyond mostUnrepaired.
type drifting struct {
	cluster, set string
	ref          apply.Ref
}

// news returns the message to report about an unrepaired object; empty if it was reported.
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

// repaired records that the set of an object was applied: later drift in it is reported again.
func (u *unrepaired) repaired(of types.UID, e apply.DriftEvent) {
	told := (*u)[of]
	for one := range told {
		if one.cluster == e.Cluster && one.set == e.Set {
			delete(told, one)
			delete(told, drifting{}) // makes room for other objects
		}
	}
	if len(told) == 0 {
		delete(*u, of)
	}
}
