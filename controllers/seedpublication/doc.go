// Package seedpublication carries what a seed needs of a landscape folder into the virtual garden,
// and reads it there: the settings of landscape.yaml that count for Seeds and Shoots, and the
// overlays of their components. Declarations are not among it, they are objects of the virtual
// garden anyway.
//
// A publication is made of parts, immutable Secrets named after their content, and of a pointer, a
// ConfigMap that names them. The pointer is written last, so a reader sees the former publication
// or the new one, never half of both.
//
// Apart from it, and written before it, is the permit.SeedReview (review.go, publishreview.go).
//
// What a Seed or Shoot says to both sides is read here, too: the report (report.go), which
// approvals are used, and why a gardenlet leaves it alone (leftalone.go).
//
// What does not live here: when something is published (the operator), which deletions of a review
// count (permit), and how a seed uses it (gardenlet).
package seedpublication
