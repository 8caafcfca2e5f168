// Package serving answers on the ports of a role: probes and metrics. What is asked and measured is
// the matter of the role.
package serving
