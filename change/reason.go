// SPDX-License-Identifier: Apache-2.0

package change

import landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"

// Reason is why a deletion or recreation is held. Inventories and statuses store it.
type Reason = landscapev1alpha1.HeldReason
