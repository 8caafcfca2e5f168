// SPDX-License-Identifier: Apache-2.0

package access

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsPodServing(t *testing.T) {
	now := metav1.Now()
	for name, c := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"an address":              {corev1.Pod{Status: corev1.PodStatus{PodIP: "10.1.2.3", Phase: corev1.PodRunning}}, true},
		"an address of IPv6":      {corev1.Pod{Status: corev1.PodStatus{PodIP: "fd00::1"}}, true},
		"the second of two":       {corev1.Pod{Status: corev1.PodStatus{PodIP: "239.1.2.3", PodIPs: []corev1.PodIP{{IP: "239.1.2.3"}, {IP: "fd00::1"}}}}, true},
		"played":                  {corev1.Pod{Status: corev1.PodStatus{PodIP: "239.1.2.3", PodIPs: []corev1.PodIP{{IP: "239.1.2.3"}}}}, false},
		"multicast of IPv6":       {corev1.Pod{Status: corev1.PodStatus{PodIP: "ff02::1"}}, false},
		"multicast in disguise":   {corev1.Pod{Status: corev1.PodStatus{PodIP: "::ffff:239.1.2.3"}}, false},
		"not started yet":         {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, false},
		"no address":              {corev1.Pod{Status: corev1.PodStatus{PodIP: "somewhere"}}, false},
		"the unspecified one":     {corev1.Pod{Status: corev1.PodStatus{PodIP: "0.0.0.0"}}, false},
		"ended":                   {corev1.Pod{Status: corev1.PodStatus{PodIP: "10.1.2.3", Phase: corev1.PodSucceeded}}, false},
		"evicted":                 {corev1.Pod{Status: corev1.PodStatus{PodIP: "10.1.2.3", Phase: corev1.PodFailed}}, false},
		"on its way out (asleep)": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Status: corev1.PodStatus{PodIP: "10.1.2.3"}}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, IsPodServing(c.pod)) })
	}
}
