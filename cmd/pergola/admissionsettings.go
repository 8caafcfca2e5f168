// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/controllers/webhook/admission"
)

// readSettings uses the configuration file for flags that were not given.
func (s *admissionCommand) readSettings(cmd *cobra.Command) (*admission.Settings, error) {
	if s.configFile == "" {
		return &admission.Settings{}, nil
	}
	c, err := admission.ReadSettings(s.configFile)
	if err != nil {
		return nil, err
	}
	given := cmd.Flags().Changed
	take := func(flag string, at *string, value string) {
		if value != "" && !given(flag) {
			*at = value
		}
	}
	take("virtual-kubeconfig", &s.virtualKubeconfig, c.GardenClientConnection.Kubeconfig)
	take("bind-address", &s.address, c.Server.Webhooks.BindAddress)
	take(flagLogLevel, &s.log.level, c.LogLevel)
	take("log-format", &s.log.format, c.LogFormat)
	if !s.selfSigned {
		take("tls-cert-file", &s.certFile, filepath.Join(c.Server.Webhooks.TLS.ServerCertDir, "tls.crt"))
		take("tls-private-key-file", &s.keyFile, filepath.Join(c.Server.Webhooks.TLS.ServerCertDir, "tls.key"))
	}
	if port := c.Server.Webhooks.Port; port != 0 && !given("port") {
		s.port = port
	}
	if !given(flagShutdownDelay) {
		s.shutdownDelay = defaultShutdownDelay
	}
	if probes := c.Server.HealthProbes; probes != nil && !given(flagHealthPort) {
		s.healthPort = probes.Port
	}
	if metrics := c.Server.Metrics; metrics != nil {
		s.metricsPort = metrics.Port
	}
	return c, nil
}
