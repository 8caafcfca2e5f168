// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/source/receiver"
)

func newHook() *cobra.Command {
	cmd := &cobra.Command{
		Use: "hook", Short: "Hooks for a Git server",
		Example: `  pergola hook post-receive --help`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return errors.New("name the hook: post-receive") },
	}
	cmd.AddCommand(newPostReceive())
	return cmd
}

func newPostReceive() *cobra.Command {
	var address, tokenFile, caFile, by string
	var landscapes []string
	var noFollow bool
	var within time.Duration
	cmd := &cobra.Command{
		Use:   "post-receive --url URL --token-file FILE --landscape NAMESPACE/NAME[/RECEIVER]...",
		Short: "Request a sync after a push, and show its progress to the person who pushed",
		Long: `This is the post-receive hook of a bare repository without a forge. It requests a sync of each
Landscape from the operator at --url, through a receiver of type hmac (default name: push). Git
shows the printed progress to the person who pushes. The hook never makes a push fail, because the
push is complete by then. An interruption stops only the display.`,
		Example: `  exec pergola hook post-receive --url https://pergola.example.com --token-file /etc/pergola/token --landscape garden/prod`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			receivers, err := receiverNames(landscapes)
			if err != nil {
				return err
			}
			if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
				return errors.New("--url: want the address of the operator's receivers, such as https://pergola.example.com")
			}
			token, err := readTokenFile(tokenFile)
			if err != nil {
				return err
			}
			client, err := hookClient(caFile)
			if err != nil {
				return err
			}
			if by == "" {
				by = firstEnvValue("GL_USER", "GIT_PUSHER", "REMOTE_USER", "LOGNAME", "USER")
			}
			pushes, err := receiver.ParsePushes(cmd.InOrStdin(), by)
			if err != nil {
				return err
			}
			hook := receiver.PostReceive{
				Client:    &receiver.Client{URL: address, Token: token, HTTP: client, Clock: clock.RealClock{}},
				Receivers: receivers, Pusher: by, Follow: !noFollow, FollowTimeout: within, Out: cmd.OutOrStdout(),
			}
			hook.Run(cmd.Context(), pushes)
			return nil
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "address of the operator's receivers")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file with the token of the receivers")
	cmd.Flags().StringArrayVar(&landscapes, "landscape", nil, "Landscape to sync, and its receiver; may be given several times")
	cmd.Flags().StringVar(&caFile, "ca-file", "", "certificates to trust besides the certificates of the system, as PEM")
	cmd.Flags().StringVar(&by, "by", "", "name of the person who pushed (default: from the Git server, or the user)")
	cmd.Flags().BoolVar(&noFollow, "no-follow", false, "only request the sync")
	cmd.Flags().DurationVar(&within, "timeout", 15*time.Minute, "how long to follow a sync")
	for _, name := range []string{"url", "token-file", "landscape"} {
		_ = cmd.MarkFlagRequired(name) // the flag exists
	}
	return cmd
}

var receiverNamePattern = regexp.MustCompile(`^[a-z0-9][-a-z0-9.]*/[a-z0-9][-a-z0-9.]*(/[a-z0-9][-a-z0-9]*)?$`)

// receiverNames adds the default receiver "push" to names without one.
func receiverNames(landscapes []string) ([]string, error) {
	var out []string
	for _, l := range landscapes {
		if !receiverNamePattern.MatchString(l) {
			return nil, fmt.Errorf("--landscape %q: want NAMESPACE/NAME or NAMESPACE/NAME/RECEIVER", l)
		}
		if strings.Count(l, "/") == 1 {
			l += "/push"
		}
		out = append(out, l)
	}
	return out, nil
}

// readTokenFile reads a token without the trailing line break that editors add.
func readTokenFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	if data = bytes.TrimRight(data, "\r\n"); len(data) == 0 {
		return nil, fmt.Errorf("--token-file: %s is empty", path)
	}
	return data, nil
}

// firstEnvValue returns the value of the first variable that has one.
func firstEnvValue(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

func hookClient(caFile string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if caFile != "" {
		data, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("--ca-file: %s contains no PEM certificate", caFile)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}
