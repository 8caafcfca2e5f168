// Package garbagecollector deletes the immutable Secrets and ConfigMaps of a cluster that nothing
// refers to any more. It does the work of gardener-resource-manager's controller of the same name.
//
// Garbage is what has the label resources.gardener.cloud/garbage-collectable-reference=true and is
// named by nobody's annotation reference.resources.gardener.cloud/{secret,configmap}-<hash>=<name>
// in its namespace. Since a wrong deletion takes workload down and a late one costs nothing, an
// object goes only if all of this holds:
//
//   - it is older than 10 minutes;
//   - nobody has referred to it for 10 minutes, seen by at least two looks: what just lost its last
//     referrer may still be used by a pod that is being replaced, or be about to be referred to
//     again;
//   - every list of referrers was read to its end, and a kind is taken for absent only if the API
//     server says what it serves;
//   - a third, live look at its namespace, right before the deletion, finds no annotation and no
//     spec that names it anywhere, so that a running pod (or a ManagedResource) without annotations
//     protects what it uses;
//   - it is still the very object, in the very version, that was looked at.
//
// What does not live here: who makes such objects and the annotations (render), and other ways
// objects go (apply).
package garbagecollector
