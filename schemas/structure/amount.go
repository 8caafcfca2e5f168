// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of plausible amounts: machines have fewer cores, and programs and volumes more bytes.
// Wrong suffixes result in amounts far beyond.
const (
	maxCores = 10_000
	minBytes = 1 << 20
	// maxPodCores and the following constants are bounds of one pod.
	maxPodCores      = 256
	minPodMillicores = 10
	maxPodMemory     = 8 << 40
)

// CheckAmount returns the fault of an implausible quantity of a resource, or "" if there is none.
// API servers accept any quantity.
func CheckAmount(name string, amount resource.Quantity) string {
	text := amount.String()
	switch {
	case amount.Sign() <= 0:
		return ""
	case name == "cpu" && amount.CmpInt64(maxCores) > 0:
		return fmt.Sprintf("is %s cores, more than machines have; write a number of cores, such as 2, or of thousandths, such as 500m", amount.AsDec())
	case name != "memory" && name != "storage" && name != "ephemeral-storage":
		return ""
	case strings.HasSuffix(text, "m") && amount.CmpInt64(minBytes) < 0:
		return fmt.Sprintf("is %s bytes, since m stands for thousandths; did you mean %s?", amount.AsDec(), strings.TrimSuffix(text, "m")+"Mi")
	case amount.CmpInt64(minBytes) < 0:
		return fmt.Sprintf("is %s bytes; write a unit, such as Mi or Gi", amount.AsDec())
	}
	return ""
}

// CheckPodAmount returns the fault of a quantity as a bound for one pod, or "" if there is none.
func CheckPodAmount(name string, amount resource.Quantity) string {
	switch {
	case name != "cpu" && name != "memory":
	case amount.Sign() <= 0:
		return "allows pods nothing; leave it out for no limit"
	case name == "cpu" && amount.CmpInt64(maxPodCores) > 0:
		return fmt.Sprintf("is %s cores, more than a pod can have; write a number of cores, such as 2, or of thousandths, such as 500m", amount.AsDec())
	case name == "cpu" && amount.MilliValue() < minPodMillicores:
		return fmt.Sprintf("is %s cores, too little for a pod; m stands for thousandths", amount.AsDec())
	case name == "memory" && amount.CmpInt64(maxPodMemory) > 0:
		return fmt.Sprintf("is %s bytes, more than a pod can have", amount.AsDec())
	}
	return ""
}
