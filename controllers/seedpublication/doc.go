// SPDX-License-Identifier: Apache-2.0

// Package seedpublication publishes the landscape settings of a seed in the virtual garden, and
// reads them there. They are the part of landscape.yaml for Seeds and Shoots, and the overlays of
// their components. Declarations are not included, because they are objects of the virtual garden.
//
// A publication consists of parts, immutable Secrets named after their content, and a pointer, a
// ConfigMap that names them. The pointer is written last, so a reader sees the previous publication
// or the new one, never a mix.
//
// The permit.SeedReview (review.go, publishreview.go) is separate, and written first.
//
// It also has the data of a Seed or Shoot that operator and gardenlet share: report, used
// approvals, and why a gardenlet ignores an owner.
//
// It does not decide when to publish (operator), which reviewed deletions count (permit), or how a
// seed uses a publication (gardenlet).
package seedpublication
