// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
)

// NewServer returns a server for a Receiver, with limits for slow senders and large headers.
// Followed syncs end with the context.
func NewServer(ctx context.Context, handler http.Handler, log logr.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(log.V(1)), slog.LevelInfo),
	}
}
