// SPDX-License-Identifier: Apache-2.0

// Package garden serves the webhooks of upstream's gardener-admission-controller
// (pkg/admissioncontroller/webhook/admission) in the virtual garden. The paths are upstream's, so
// that its webhook configurations keep working. The webhooks protect namespaces of Projects,
// kubeconfigs and configurations that Shoots use, the internal domain, and objects that gardenlets
// publish. They limit sizes and gardenlets' objects, and set the labels of credentials.
//
// Each webhook has its own file. Lists come from the Reader's cache, if any; single objects are
// read from the API server.
//
// Package authorizer knows the owners of objects, and package crosscheck the rules about
// configurations. Package admission has the server, its metrics and timeouts. Component
// garden/gardener-admission-controller has the webhook configurations.
package garden
