// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pergola-dev/pergola/hack/childprocess"
)

// serverFolderVariable names a folder. It makes the test executable the server that control planes
// call, with the files of the folder. The executable is started again in the network of the pods.
const serverFolderVariable = "PERGOLA_VARIANTS_SERVE"

// serverHost is an address that every pod reaches through its only device (hack/local/podnet).
const (
	serverHost    = "169.254.1.1"
	serverAddress = serverHost + ":18443"
)

// serverRequest is a request that the server received.
type serverRequest struct {
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

// serve answers webhooks for audit, authentication and authorization and issues tokens, until it is
// killed or its parent ends.
func serve(folder string) error {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(folder, serverHost+".crt"), filepath.Join(folder, serverHost+".key"))
	if err != nil {
		return err
	}
	keySet, err := os.ReadFile(filepath.Join(folder, "keys.json"))
	if err != nil {
		return err
	}
	records, err := os.OpenFile(filepath.Join(folder, "records"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	note := func(r *http.Request) ([]byte, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		return body, json.NewEncoder(records).Encode(serverRequest{r.URL.Path, body})
	}
	issuer := "https://" + serverAddress + "/issuer"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /issuer/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"issuer": issuer, "jwks_uri": issuer + "/keys", "response_types_supported": []string{"id_token"},
			"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("GET /issuer/keys", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(keySet)
	})
	mux.HandleFunc("POST /audit", func(w http.ResponseWriter, r *http.Request) {
		if _, err := note(r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("POST /authenticate", func(w http.ResponseWriter, r *http.Request) {
		body, err := note(r)
		var review struct {
			APIVersion string                 `json:"apiVersion"`
			Spec       struct{ Token string } `json:"spec"`
		}
		if err := errors.Join(err, json.Unmarshal(body, &review)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		name, known := strings.CutPrefix(review.Spec.Token, "known-")
		status := map[string]any{"authenticated": known}
		if known {
			status["user"] = map[string]any{"username": "webhook:" + name, "groups": []string{"webhook"}}
		}
		writeJSON(w, map[string]any{"apiVersion": review.APIVersion, "kind": "TokenReview", "status": status})
	})
	mux.HandleFunc("POST /authorize", func(w http.ResponseWriter, r *http.Request) {
		body, err := note(r)
		var review struct {
			APIVersion string `json:"apiVersion"`
			Spec       struct {
				User               string
				ResourceAttributes struct{ Verb, Namespace string }
			} `json:"spec"`
		}
		if err := errors.Join(err, json.Unmarshal(body, &review)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		asked := review.Spec.ResourceAttributes
		status := map[string]any{"allowed": false, "denied": asked.Verb == "delete", "reason": "the webhook has its reasons"}
		if asked.Namespace == authorizedNamespace && asked.Verb != "delete" {
			status = map[string]any{"allowed": true}
		}
		writeJSON(w, map[string]any{"apiVersion": review.APIVersion, "kind": "SubjectAccessReview", "status": status})
	})
	listener, err := tls.Listen("tcp", serverAddress, &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return err
	}
	fmt.Println(readyMessage)
	go func() { // the pipe ends with the test in any case
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, mux)
}

const readyMessage = "ready"

// authorizedNamespace is where the authorization webhook allows everything except deletion.
const authorizedNamespace = "authorized"

func writeJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// testServer is the running server, with the values for files of the landscape.
type testServer struct {
	folder string
	cmd    *exec.Cmd
	stdin  io.Closer

	// URL is its URL; CA is the authority of its certificate.
	URL, CA string
	// OwnCertificate and OwnKey are for the additional name of the virtual garden's API server.
	OwnCertificate, OwnKey string
}

const additionalHostName = "api.own-name.example.org"

// startServer starts the server in the network of the pods.
func startServer() (*testServer, error) {
	s := &testServer{folder: env.keys.folder, URL: "https://" + serverAddress, CA: env.keys.caBundle()}
	if _, _, err := env.keys.serverCertificate(serverHost); err != nil {
		return nil, err
	}
	var err error
	if s.OwnCertificate, s.OwnKey, err = env.keys.serverCertificate(additionalHostName); err != nil {
		return nil, err
	}
	keySet, err := env.keys.keySet()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(s.folder, "keys.json"), keySet, 0o600); err != nil {
		return nil, err
	}
	itself, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s.cmd = exec.Command(env.Local, "--dir", env.State, "run", "--", itself)
	s.cmd.Env = append(os.Environ(), serverFolderVariable+"="+s.folder)
	s.cmd.Stderr = os.Stderr
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.stdin = stdin
	if err := childprocess.Start(s.cmd); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != readyMessage {
		s.stop()
		return nil, fmt.Errorf("the server that control planes call did not start: %q, %w", line, err)
	}
	return s, nil
}

func (s *testServer) stop() {
	_ = s.stdin.Close()
	timer := time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Signal(syscall.SIGKILL) })
	defer timer.Stop()
	_ = s.cmd.Wait()
}

// Kubeconfig returns a kubeconfig for a webhook of the server.
func (s *testServer) Kubeconfig(path string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: webhook
  cluster: {server: "%s/%s", certificate-authority-data: %s}
contexts:
- name: webhook
  context: {cluster: webhook, user: webhook}
current-context: webhook
users:
- name: webhook
  user: {}
`, s.URL, path, base64.StdEncoding.EncodeToString([]byte(s.CA)))
}

// requestsTo returns the requests to a path that the server received.
func (s *testServer) requestsTo(path string) (out []json.RawMessage, err error) {
	file, err := os.Open(filepath.Join(s.folder, "records"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for decoder := json.NewDecoder(file); ; {
		var r serverRequest
		if err := decoder.Decode(&r); err != nil {
			return out, nil // the last one may be incomplete
		}
		if r.Path == path {
			out = append(out, r.Body)
		}
	}
}
