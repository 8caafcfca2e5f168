package structure

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts that are no amount of what they are for. No machine has more cores, and no program less
// memory or volume less room; a suffix that was meant otherwise is far beyond.
const (
	mostCores = 10_000
	leastRoom = 1 << 20
	// Bounds of one pod.
	mostCoresOfPod       = 256
	leastMillicoresOfPod = 10
	mostMemoryOfPod      = 8 << 40
)

// Amount says what is wrong with a quantity of a resource, or of a field of that meaning, "" if
// nothing is. API servers take any quantity, whatever it is one of.
func Amount(name string, amount resource.Quantity) string {
	text := amount.String()
	switch {
	case amount.Sign() <= 0:
		return ""
	case name == "cpu" && amount.CmpInt64(mostCores) > 0:
		return fmt.Sprintf("is %s cores, more than machines have; write a number of cores, such as 2, or of thousandths, such as 500m", amount.AsDec())
	case name != "memory" && name != "storage" && name != "ephemeral-storage":
		return ""
	case strings.HasSuffix(text, "m") && amount.CmpInt64(leastRoom) < 0:
		return fmt.Sprintf("is %s bytes, since m stands for thousandths; did you mean %s?", amount.AsDec(), strings.TrimSuffix(text, "m")+"Mi")
	case amount.CmpInt64(leastRoom) < 0:
		return fmt.Sprintf("is %s bytes; write a unit, such as Mi or Gi", amount.AsDec())
	}
	return ""
}

// AmountOfPod says what is wrong with a quantity of a resource as a bound for one pod, "" if
// nothing is.
func AmountOfPod(name string, amount resource.Quantity) string {
	switch {
	case name != "cpu" && name != "memory":
	case amount.Sign() <= 0:
		return "lets no pod have anything; leave it out for no bound"
	case name == "cpu" && amount.CmpInt64(mostCoresOfPod) > 0:
		return fmt.Sprintf("is %s cores, more than a pod can have; write a number of cores, such as 2, or of thousandths, such as 500m", amount.AsDec())
	case name == "cpu" && amount.MilliValue() < leastMillicoresOfPod:
		return fmt.Sprintf("is %s cores, less than a pod can do anything with; m stands for thousandths", amount.AsDec())
	case name == "memory" && amount.CmpInt64(mostMemoryOfPod) > 0:
		return fmt.Sprintf("is %s bytes, more than a pod can have", amount.AsDec())
	}
	return ""
}
