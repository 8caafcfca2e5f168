package strict

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// Hints finds parts of an object that work and are hardly meant: they are warnings, where all else that the package finds is wrong.
func Hints(o *unstructured.Unstructured) []structure.Finding {
	switch kind := o.GetKind(); kind {
	case "PrometheusRule":
		return recordedNames(o.Object)
	case "CronJob":
		return append(deadline(o.Object), dnsPolicy(kind, o.Object)...)
	default:
		return dnsPolicy(kind, o.Object)
	}
}

// leastDeadline is the time in seconds between two runs of the controller of CronJobs
// (https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#starting-deadline).
const leastDeadline = 10

// deadline of a CronJob that may be over before its controller looks.
func deadline(object map[string]any) []structure.Finding {
	at := fieldpath.Path{"spec", "startingDeadlineSeconds"}
	if seconds, given := numberAt(object, at); given && seconds >= 0 && seconds < leastDeadline {
		return []structure.Finding{{Path: at, Type: "Invalid", Message: fmt.Sprintf("%v seconds may be over before the controller starts a job: it reads schedules every %d seconds", seconds, leastDeadline)}}
	}
	return nil
}
