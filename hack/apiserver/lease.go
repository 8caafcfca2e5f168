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

// Pool is the variable of the environment that names the socket of the pool of servers of a run of
// tests.
const Pool = "PERGOLA_API_SERVERS"

// Request asks a pool for a server that serves some definitions. The server belongs to whoever
// asked until the connection ends.
type Request struct {
	Definitions []*apiextensionsv1.CustomResourceDefinition `json:"definitions,omitempty"`
}

// Answer is how the server is reached, or why there is none.
type Answer struct {
	Host        string `json:"host,omitempty"`
	CA          []byte `json:"ca,omitempty"`
	Certificate []byte `json:"certificate,omitempty"`
	Key         []byte `json:"key,omitempty"`
	Error       string `json:"error,omitempty"`
}

// leases holds the connections to the pool, which Go closes where nobody holds them: each lasts
// until its end, or that of the process.
var leases struct {
	sync.Mutex
	open []net.Conn
}

func lease(socket string, definitions []*apiextensionsv1.CustomResourceDefinition) (*rest.Config, func() error, error) {
	connection, err := net.Dial("unix", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("asking the pool that %s names: %w", Pool, err)
	}
	var answer Answer
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
	leases.Lock()
	defer leases.Unlock()
	leases.open = append(leases.open, connection)
	config := &rest.Config{
		// as envtest has it: no test waits for its own rate limit
		Host: answer.Host, QPS: 1000, Burst: 2000,
		TLSClientConfig: rest.TLSClientConfig{CAData: answer.CA, CertData: answer.Certificate, KeyData: answer.Key},
	}
	return config, func() error { return giveBack(connection) }, nil
}

// giveBack returns when the pool has the server again.
func giveBack(connection net.Conn) error {
	defer connection.Close()
	if err := connection.(*net.UnixConn).CloseWrite(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, connection)
	return err
}
