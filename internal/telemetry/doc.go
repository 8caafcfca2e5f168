// SPDX-License-Identifier: Apache-2.0

// Package telemetry exports OpenTelemetry traces if the environment configures it. Packages apply
// and controllers create the spans with the global tracer provider, which does nothing before
// Start.
package telemetry
