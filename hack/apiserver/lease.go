// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
)

// PoolVariable is the environment variable that names the socket of the pool of API servers.
const PoolVariable = "PERGOLA_API_SERVERS"

// Request asks a pool for a server with some definitions. The lease lasts until the connection
// ends.
type Request struct {
	Definitions []*apiextensionsv1.CustomResourceDefinition `json:"definitions,omitempty"`
}

// Response says how to connect to the server, or why there is none.
type Response struct {
	Host        string `json:"host,omitempty"`
	CA          []byte `json:"ca,omitempty"`
	Certificate []byte `json:"certificate,omitempty"`
	Key         []byte `json:"key,omitempty"`
	Error       string `json:"error,omitempty"`
}

// openLeases references the connections to the pool, as Go closes unreferenced ones. A connection
// lasts until its lease or the process ends.
var openLeases struct {
	sync.Mutex
	open []net.Conn
}

func leaseServer(socket string, definitions []*apiextensionsv1.CustomResourceDefinition) (*rest.Config, func() error, error) {
	connection, err := net.Dial("unix", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("asking the pool that %s names: %w", PoolVariable, err)
	}
	var answer Response
	if err = json.NewEncoder(connection).Encode(Request{Definitions: definitions}); err == nil {
		err = json.NewDecoder(connection).Decode(&answer)
	}
	if err != nil {
		_ = connection.Close()
		return nil, nil, fmt.Errorf("asking the pool at %s: %w", socket, err)
	}
	if answer.Error != "" {
		_ = connection.Close()
		return nil, nil, fmt.Errorf("the pool: %s", answer.Error)
	}
	openLeases.Lock()
	defer openLeases.Unlock()
	openLeases.open = append(openLeases.open, connection)
	config := &rest.Config{
		// as in envtest: no test waits for its own rate limit
		Host: answer.Host, QPS: 1000, Burst: 2000,
		TLSClientConfig: rest.TLSClientConfig{CAData: answer.CA, CertData: answer.Certificate, KeyData: answer.Key},
	}
	return config, func() error { return releaseServer(connection) }, nil
}

// releaseServer returns the server and waits until the pool has it.
func releaseServer(connection net.Conn) error {
	defer connection.Close()
	if err := connection.(*net.UnixConn).CloseWrite(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, connection)
	return err
}
