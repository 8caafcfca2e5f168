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

// componentController is the value of label HighAvailabilityConfigType for controllers; others are
// servers.
const componentController = "controller"

const (
	// Skip is the label of workload and autoscalers that keep their replicas and constraints.
	Skip = "high-availability-config.resources.gardener.cloud/skip"
	// ZonePinning `true`, on a namespace, has its pods run in the zones of the namespace only.
	ZonePinning = "high-availability-config.resources.gardener.cloud/zone-pinning"
	// HostSpread `true`, on a workload, makes it a must that its pods run on different nodes.
	HostSpread = "high-availability-config.resources.gardener.cloud/host-spread"
)

// Placement is what a namespace says about its pods.
type Placement struct {
	// FailureTolerance is which failures they survive: nil if not said, empty for none.
	FailureTolerance *gardencorev1beta1.FailureToleranceType
	// Zones they run in, sorted, and whether in these only.
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
	// Namespaces of control planes are pinned without saying so.
	p.ZonePinning = p.FailureTolerance != nil || isTrue(annotations[ZonePinning])
	return p
}

// MustSpreadHosts tells whether pods have to run on different nodes, if there are some.
func (p Placement) MustSpreadHosts(annotations map[string]string) bool {
	return ptr.Deref(p.FailureTolerance, "") != "" || isTrue(annotations[HostSpread])
}

// mustSpreadZones tells whether pods have to run in different zones: in control planes if a zone
// may fail, elsewhere if there are several.
func (p Placement) mustSpreadZones() bool {
	return len(p.Zones) > 1 && (p.FailureTolerance == nil || *p.FailureTolerance == gardencorev1beta1.FailureToleranceTypeZone)
}

func isTrue(value string) bool {
	yes, err := strconv.ParseBool(value)
	return err == nil && yes
}

// replicas says how many there should be of what has this metadata and number now; nil leaves the
// number alone. What is scaled to none stays so: it is hibernated.
func (p Placement) replicas(metadata *metav1.ObjectMeta, now *int32) (*int32, error) {
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

// ScaleWithin raises the least number of replicas of an autoscaler.
func (p Placement) ScaleWithin(autoscaler *autoscalingv2.HorizontalPodAutoscaler) error {
	wanted, err := p.replicas(&autoscaler.ObjectMeta, autoscaler.Spec.MinReplicas)
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
