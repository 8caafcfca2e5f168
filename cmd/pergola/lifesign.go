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

// silentFor is how long a command may be silent on a terminal before it says that it works.
const silentFor = 2 * time.Second

// lifeSign says in the last line of a terminal for how long a command has worked, while it says
// nothing else. The line goes before anything else is written.
type lifeSign struct {
	w     io.Writer
	name  string
	clock clock.WithTicker

	mutex        sync.Mutex
	began, spoke time.Time
	// open: the last thing that was written is no whole line, which must stay.
	open, shown bool
}

// showLifeSign has a command say on a terminal that it works. Where either of its outputs is none,
// nothing is added to it: both may be shown by the same pager.
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

// start looks every second; the function that it returns ends that, and takes the line away.
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

// over is an output of the command that clears the line first.
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
