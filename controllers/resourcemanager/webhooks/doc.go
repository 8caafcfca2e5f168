// Package webhooks serves the admission webhooks of the resource manager under the paths of
// upstream's gardener-resource-manager, so that webhook configurations that point there keep
// working. Each webhook is a pure function of an object and of the facts it needs, in a file of its
// own; handler.go makes webhooks of them.
//
// An answer changes only what the webhook decides about: fields that this program does not know
// stay as they were sent.
//
// Where upstream's result is refused or harmful, ours differs: tokens and replicas that annotations
// ask for are checked, with the annotation named; pods for Windows get no seccomp profile;
// constraints without a selector, or that select revisions already, get no matchLabelKeys; the
// maximum of an autoscaler never stays below its minimum; tolerations come in a fixed order;
// finalizers of an Etcd that is being deleted can go whatever the rest is like; a cache that does
// not know an object yet refuses nothing.
//
// What does not live here: the webhook configurations (components; a test compares them with what
// is served), the rules about extension objects (package schemas, by way of package admission), the
// server and its certificates (package admission, or the manager of controller-runtime), and flags
// (cmd/pergola).
package webhooks
