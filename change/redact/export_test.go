package redact

// Outputs is for tests outside of the package, which may import the printers.
var Outputs = &outputs
