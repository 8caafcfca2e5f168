// Package permit decides which deletions and recreations may happen: limits by number, share and protected kind, what reviewers have seen, and approvals,
// which count once.
//
// What does not live here: deleting (apply), where an approval is written down (landscape, operator, gardenlet).
package permit
