// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// server is the API server that the tests share.
var server struct{ config *rest.Config }

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server.config = config }, crds.ByGroup("core.gardener.cloud")...))
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
