// SPDX-License-Identifier: Apache-2.0

// Package webhooks serves the admission webhooks of the resource manager under the paths of
// upstream's gardener-resource-manager, so that existing webhook configurations work. Each webhook
// is a pure function of an object and the facts it needs, in its own file; handler.go serves them.
//
// A response changes only fields that the webhook decides about: unknown fields stay as sent.
//
// Our results differ where upstream's would be rejected or harmful:
//
//   - requested token settings and replicas are validated, and errors name the annotation;
//   - pods for Windows get no seccomp profile;
//   - constraints without a selector, or that select revisions already, get no matchLabelKeys;
//   - the maximum of an autoscaler is never below its minimum;
//   - tolerations have a fixed order;
//   - finalizers of an Etcd that is being deleted can always be removed;
//   - a cache that does not know an object yet rejects nothing.
//
// Other packages have the webhook configurations (components; a test compares them) and the rules
// for extension objects (schemas, through admission). They also provide the server and its
// certificates (admission, or the manager of controller-runtime) and the flags (cmd/pergola).
package webhooks
