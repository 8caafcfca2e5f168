// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
)

// maxDriftReports limits the unrepaired objects of an owner that are reported individually. It is
// below client-go's burst of 25 Events per object.
const maxDriftReports = 20

// driftReports holds the reports about unrepaired objects by owner. Each repair is retried, but
// each object is reported once until its message changes.
type driftReports map[types.UID]map[driftedObject]string

// driftedObject is an object of a set; the zero value represents all objects beyond
// maxDriftReports.
type driftedObject struct {
	cluster, set string
	ref          apply.Ref
}

// newMessage returns the message to report about an unrepaired object, or "" if it was reported.
func (u *driftReports) newMessage(of types.UID, e apply.DriftEvent, message string) string {
	if *u == nil {
		*u = driftReports{}
	}
	told := (*u)[of]
	if told == nil {
		told = map[driftedObject]string{}
		(*u)[of] = told
	}
	one := driftedObject{e.Cluster, e.Set, e.Ref}
	if _, there := told[one]; !there && len(told) >= maxDriftReports {
		one, message = driftedObject{}, fmt.Sprintf("more than %d objects are not repaired; the others are reported once there are fewer", maxDriftReports)
	}
	if told[one] == message {
		return ""
	}
	told[one] = message
	return message
}

// removeSet records that the set of an object was applied: later drift in it is reported again.
func (u *driftReports) removeSet(of types.UID, e apply.DriftEvent) {
	told := (*u)[of]
	for one := range told {
		if one.cluster == e.Cluster && one.set == e.Set {
			delete(told, one)
			delete(told, driftedObject{}) // makes room for other objects
		}
	}
	if len(told) == 0 {
		delete(*u, of)
	}
}
