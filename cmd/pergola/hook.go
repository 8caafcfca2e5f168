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
		Use: "hook", Short: "What a Git server runs",
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
		Short: "Ask for a sync of what was pushed, and show the pusher how it goes",
		Long: `Is the post-receive hook of a bare repository without a forge. It asks the operator at --url for a sync by the
receiver of type hmac of each Landscape (default name of the receiver: push), and prints its progress, which Git shows to
who pushes. It never makes a push fail: that is over by then. Who hangs up stops only the showing.`,
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
				Receivers: receivers, By: by, Follow: !noFollow, FollowTimeout: within, Out: cmd.OutOrStdout(),
			}
			hook.Run(cmd.Context(), pushes)
			return nil
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "address of the operator's receivers")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file with the token of the receivers")
	cmd.Flags().StringArrayVar(&landscapes, "landscape", nil, "Landscape that is synced, and its receiver; several times for several")
	cmd.Flags().StringVar(&caFile, "ca-file", "", "certificates that are trusted besides those of the system, as PEM")
	cmd.Flags().StringVar(&by, "by", "", "who pushed (default: what the Git server says, or the user)")
	cmd.Flags().BoolVar(&noFollow, "no-follow", false, "only ask for the sync")
	cmd.Flags().DurationVar(&within, "timeout", 15*time.Minute, "how long a sync is followed")
	for _, name := range []string{"url", "token-file", "landscape"} {
		_ = cmd.MarkFlagRequired(name) // the flag exists
	}
	return cmd
}

var receiverOfLandscape = regexp.MustCompile(`^[a-z0-9][-a-z0-9.]*/[a-z0-9][-a-z0-9.]*(/[a-z0-9][-a-z0-9]*)?$`)

// receiverNames adds the default receiver "push" to names without one.
func receiverNames(landscapes []string) ([]string, error) {
	var out []string
	for _, l := range landscapes {
		if !receiverOfLandscape.MatchString(l) {
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
			return nil, fmt.Errorf("--ca-file: %s holds no certificate as PEM", caFile)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}
