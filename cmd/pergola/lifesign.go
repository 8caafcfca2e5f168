package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
)

// silentFor is how long a command may be silent on a terminal before the life sign appears.
const silentFor = 2 * time.Second

// lifeSign shows in the last line of a terminal for how long a silent command has worked. Any other
// output clears the line first.
type lifeSign struct {
	w     io.Writer
	name  string
	clock clock.WithTicker

	mutex        sync.Mutex
	began, spoke time.Time
	// open reports whether the last output did not end a line; it must stay.
	open, shown bool
}

// showLifeSign adds a life sign to a command. If one of its outputs is not a terminal, it does
// nothing: one pager may show both.
func showLifeSign(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
		if !isTerminal(stdout) || !isTerminal(stderr) {
			return run(cmd, args)
		}
		sign := newLifeSign(stderr, cmd.CommandPath(), clock.RealClock{})
		cmd.SetOut(sign.over(stdout))
		cmd.SetErr(sign.over(stderr))
		stop := sign.start()
		defer stop()
		return run(cmd, args)
	}
}

func newLifeSign(w io.Writer, name string, c clock.WithTicker) *lifeSign {
	return &lifeSign{w: w, name: name, clock: c, began: c.Now(), spoke: c.Now()}
}

// start checks every second. The returned function stops it and clears the line.
func (p *lifeSign) start() (stop func()) {
	ticker := p.clock.NewTicker(time.Second)
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C():
				p.look()
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		group.Wait()
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.clear()
	}
}

func (p *lifeSign) look() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.clock.Now()
	if p.open || now.Sub(p.spoke) < silentFor {
		return
	}
	p.shown = true
	fmt.Fprintf(p.w, "\r\x1b[K%s works, for %s now", strings.TrimSpace(p.name), now.Sub(p.began).Truncate(time.Second))
}

func (p *lifeSign) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.shown = false
}

// over wraps an output of the command so that it clears the line first.
func (p *lifeSign) over(w io.Writer) io.Writer { return lifeSignOutput{w, p} }

type lifeSignOutput struct {
	io.Writer
	sign *lifeSign
}

func (o lifeSignOutput) Write(data []byte) (int, error) {
	p := o.sign
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.clear()
	p.spoke, p.open = p.clock.Now(), !bytes.HasSuffix(data, []byte("\n"))
	return o.Writer.Write(data)
}
