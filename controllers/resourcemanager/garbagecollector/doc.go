// SPDX-License-Identifier: Apache-2.0

// Package garbagecollector deletes immutable Secrets and ConfigMaps that nothing refers to. It does
// the work of gardener-resource-manager's controller of the same name.
//
// Garbage has the label resources.gardener.cloud/garbage-collectable-reference=true, and no object
// in its namespace names it in an annotation
// reference.resources.gardener.cloud/{secret,configmap}-<hash>=<name>. A wrong deletion takes
// workload down and a late one costs nothing. An object is therefore deleted only under all of
// these conditions:
//   - it is older than 10 minutes;
//   - it was unreferenced for 10 minutes in at least two scans: a replaced pod may still use it, or
//     a new reference may follow;
//   - every list of referrers was read to its end, and a kind counts as absent only if API
//     discovery says so;
//   - a live scan of its namespace, right before the deletion, finds no annotation and no spec that
//     names it (pods and ManagedResources may lack annotations);
//   - its UID and resource version are unchanged.
//
// Other packages create such objects and their annotations (render), or delete objects for other
// reasons (apply).
package garbagecollector
