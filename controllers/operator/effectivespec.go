// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// Defaults of a Landscape in a cluster.
const (
	defaultInterval     = 10 * time.Minute
	defaultPollInterval = time.Minute
	defaultRetry        = 15 * time.Second
	defaultTimeout      = time.Hour
)

// minInterval is the minimum of all intervals. Tests lower it.
var minInterval = time.Second

func syncInterval(spec *landscapev1alpha1.LandscapeSpec) time.Duration {
	if spec.Interval == nil {
		return defaultInterval
	}
	return max(spec.Interval.Duration, minInterval)
}

func pollInterval(spec *landscapev1alpha1.LandscapeSpec) time.Duration {
	if spec.Source == nil || spec.Source.Interval == nil {
		return defaultPollInterval
	}
	return max(spec.Source.Interval.Duration, minInterval)
}

func retryInterval(spec *landscapev1alpha1.LandscapeSpec) time.Duration {
	if spec.RetryInterval == nil {
		return defaultRetry
	}
	return max(spec.RetryInterval.Duration, minInterval)
}

// syncTimeout returns the timeout of a sync. A commit may only shorten it.
func syncTimeout(object, file *landscapev1alpha1.LandscapeSpec) time.Duration {
	out := defaultTimeout
	if object.Timeout != nil && object.Timeout.Duration > 0 {
		out = object.Timeout.Duration
	}
	if file.Timeout != nil && file.Timeout.Duration > 0 {
		out = min(out, file.Timeout.Duration)
	}
	return out
}

func isReviewRequired(object, file *landscapev1alpha1.LandscapeSpec) bool {
	return object.Review == landscapev1alpha1.ReviewRequired || file.Review == landscapev1alpha1.ReviewRequired
}

// effectiveDeletionGate returns the effective deletion gate. landscape.yaml can only be stricter
// than the object in the cluster. loosened lists its looser values, which are ignored.
func effectiveDeletionGate(object, file *landscapev1alpha1.DeletionGate) (gate *landscapev1alpha1.DeletionGate, loosened []string, err error) {
	limit := permit.DefaultGate()
	if object == nil {
		object = &landscapev1alpha1.DeletionGate{}
	}
	if file == nil {
		file = &landscapev1alpha1.DeletionGate{}
	}
	out := &landscapev1alpha1.DeletionGate{MaxDeletions: object.MaxDeletions, MaxShare: object.MaxShare, ProtectedKinds: object.ProtectedKinds}
	if out.MaxDeletions == nil && limit.MaxDeletions != nil {
		out.MaxDeletions = ptr.To(int32(*limit.MaxDeletions))
	}
	if out.ProtectedKinds == nil {
		out.ProtectedKinds = limit.Protected
	}
	if file.MaxDeletions != nil {
		if out.MaxDeletions != nil && *file.MaxDeletions > *out.MaxDeletions {
			loosened = append(loosened, fmt.Sprintf("deletionGate.maxDeletions %d (it stays at %d)", *file.MaxDeletions, *out.MaxDeletions))
		} else {
			out.MaxDeletions = file.MaxDeletions
		}
	}
	if file.MaxShare != nil {
		most := 0
		if limit.MaxShare != nil {
			most = *limit.MaxShare
		}
		if out.MaxShare != nil {
			if most, err = permit.ParseShare(*out.MaxShare); err != nil {
				return nil, nil, fmt.Errorf("spec.deletionGate.maxShare of the Landscape: %w", err)
			}
		}
		asked, err := permit.ParseShare(*file.MaxShare)
		if err != nil {
			return nil, nil, fmt.Errorf("landscape.yaml: spec.deletionGate.maxShare: %w", err)
		}
		if asked > most {
			loosened = append(loosened, fmt.Sprintf("deletionGate.maxShare %d%% (it stays at %d%%)", asked, most))
		} else {
			out.MaxShare = file.MaxShare
		}
	}
	if file.ProtectedKinds != nil {
		for _, kind := range out.ProtectedKinds {
			if !slices.Contains(file.ProtectedKinds, kind) {
				loosened = append(loosened, fmt.Sprintf("deletionGate.protectedKinds without %s (it stays protected)", kind))
			}
		}
		for _, kind := range file.ProtectedKinds {
			if !slices.Contains(out.ProtectedKinds, kind) {
				out.ProtectedKinds = append(slices.Clone(out.ProtectedKinds), kind)
			}
		}
	}
	return out, loosened, nil
}

// checkVerification rejects a revision whose landscape.yaml requires a check that is impossible
// here.
func checkVerification(object, file *landscapev1alpha1.LandscapeSpec) error {
	if file.Source == nil || file.Source.Verify == nil || object.Source.Verify != nil {
		return nil
	}
	return errors.New("landscape.yaml requires signatures (spec.source.verify), but the Landscape in the cluster has no keys to verify them: set spec.source.verify there")
}
