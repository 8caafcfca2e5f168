// SPDX-License-Identifier: Apache-2.0

package landscape

import "time"

// RecordHealthCheck records the last health check of everything on the cluster; the next renewal
// writes it.
func (l *SharedLease) RecordHealthCheck(at time.Time) { l.lease.recordHealthCheck(at) }
