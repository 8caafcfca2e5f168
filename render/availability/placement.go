// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// componentController is the value of label HighAvailabilityConfigType for controllers; all other
// values mean servers.
const componentController = "controller"

const (
	// SkipLabel is the label of workload and autoscalers whose replicas and constraints stay
	// unchanged.
	SkipLabel = "high-availability-config.resources.gardener.cloud/skip"
	// ZonePinningAnnotation `true` on a namespace restricts its pods to the zones of the namespace.
	ZonePinningAnnotation = "high-availability-config.resources.gardener.cloud/zone-pinning"
	// HostSpreadAnnotation `true` on a workload forces its pods onto different nodes.
	HostSpreadAnnotation = "high-availability-config.resources.gardener.cloud/host-spread"
)

// Placement holds the high-availability settings of a namespace.
type Placement struct {
	// FailureTolerance is the failure that pods survive: it is nil if not set, and empty for none.
	FailureTolerance *gardencorev1beta1.FailureToleranceType
	// Zones are sorted; ZonePinningAnnotation restricts the pods to them.
	Zones       []string
	ZonePinning bool
}

// PlacementOf reads the annotations of a namespace.
func PlacementOf(annotations map[string]string) Placement {
	var p Placement
	if value, ok := annotations[gardencorev1beta1.HighAvailabilityConfigFailureToleranceType]; ok {
		p.FailureTolerance = ptr.To(gardencorev1beta1.FailureToleranceType(value))
	}
	for zone := range strings.SplitSeq(annotations[gardencorev1beta1.HighAvailabilityConfigZones], ",") {
		if zone = strings.TrimSpace(zone); zone != "" {
			p.Zones = append(p.Zones, zone)
		}
	}
	slices.Sort(p.Zones)
	p.Zones = slices.Compact(p.Zones)
	// Namespaces of control planes are always pinned.
	p.ZonePinning = p.FailureTolerance != nil || isTrue(annotations[ZonePinningAnnotation])
	return p
}

// HasHostSpread reports whether pods have to run on different nodes if there are several.
func (p Placement) HasHostSpread(annotations map[string]string) bool {
	return ptr.Deref(p.FailureTolerance, "") != "" || isTrue(annotations[HostSpreadAnnotation])
}

// hasZoneSpread reports whether pods have to run in different zones. Control planes spread if
// they tolerate the failure of a zone, other workload always; both need several zones.
func (p Placement) hasZoneSpread() bool {
	return len(p.Zones) > 1 && (p.FailureTolerance == nil || *p.FailureTolerance == gardencorev1beta1.FailureToleranceTypeZone)
}

func isTrue(value string) bool {
	yes, err := strconv.ParseBool(value)
	return err == nil && yes
}

// wantedReplicas returns the wanted number of replicas, nil to leave it unchanged. Workload that is
// scaled to zero stays so: it is hibernated.
func (p Placement) wantedReplicas(metadata *metav1.ObjectMeta, now *int32) (*int32, error) {
	component := metadata.Labels[gardencorev1beta1.HighAvailabilityConfigType]
	if ptr.Deref(now, 0) == 0 || component == "" {
		return nil, nil
	}
	if text := metadata.Annotations[gardencorev1beta1.HighAvailabilityConfigReplicas]; text != "" {
		own, err := strconv.ParseInt(text, 10, 32)
		if err != nil || own < 0 {
			return nil, fmt.Errorf("annotation %s is %q: want a number of replicas", gardencorev1beta1.HighAvailabilityConfigReplicas, text)
		}
		return ptr.To(int32(own)), nil
	}
	if component == componentController && p.FailureTolerance != nil && *p.FailureTolerance == "" {
		return ptr.To[int32](1), nil
	}
	return ptr.To[int32](2), nil
}

// ScaleAutoscaler raises the minimum, and if necessary the maximum, of an autoscaler.
func (p Placement) ScaleAutoscaler(autoscaler *autoscalingv2.HorizontalPodAutoscaler) error {
	wanted, err := p.wantedReplicas(&autoscaler.ObjectMeta, autoscaler.Spec.MinReplicas)
	if wanted == nil || err != nil {
		return err
	}
	least := max(*wanted, *autoscaler.Spec.MinReplicas)
	if least != *autoscaler.Spec.MinReplicas {
		autoscaler.Spec.MinReplicas = &least
	}
	autoscaler.Spec.MaxReplicas = max(autoscaler.Spec.MaxReplicas, least)
	return nil
}
