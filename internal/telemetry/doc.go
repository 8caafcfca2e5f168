// Package telemetry sends traces by OpenTelemetry, where the environment says so. Spans themselves
// are made where the work is done (apply, controllers), by the global tracer provider, which does
// nothing until Start has been called.
package telemetry
