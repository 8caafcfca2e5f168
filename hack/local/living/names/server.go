// SPDX-License-Identifier: Apache-2.0

package names

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

const (
	// negativeTTL is the time in seconds that clients may cache a missing name.
	negativeTTL = 1
	// maxChainLength limits the length of a chain of names.
	maxChainLength  = 8
	upstreamTimeout = 5 * time.Second
)

// Options configure a Server.
type Options struct {
	Kube kubernetes.Interface
	// Dynamic reads DNSRecords; without it the server ignores them.
	Dynamic dynamic.Interface
	// Address is the listening address, for UDP and TCP.
	Address netip.AddrPort
	// Domain is the cluster's domain, cluster.local if empty.
	Domain string
	// PrioritySources are sources with precedence over the names that the cluster declares, but not
	// over its Services.
	PrioritySources []Source
	// FallbackSources sources come after the cluster's own, in this order, for example Records of
	// other clusters. The caller keeps them up to date.
	FallbackSources []Source
	// Upstream, host:port, resolves names that no source has; if empty, they do not exist.
	Upstream string
	// Clock is the real clock if nil.
	Clock clock.WithTicker
	// Log is the default logger if nil.
	Log *slog.Logger
}

// Server is a DNS server.
type Server struct {
	Options
	cluster *clusterSource
	records *Records
	sources []Source
}

// New returns a Server; Run starts it.
func New(options Options) (*Server, error) {
	s := &Server{Options: options}
	s.Domain = canonicalName(cmp.Or(s.Domain, "cluster.local"))
	if s.Clock == nil {
		s.Clock = clock.RealClock{}
	}
	if s.Log == nil {
		s.Log = slog.Default()
	}
	s.Log = s.Log.With("controller", "names")
	var err error
	if s.cluster, err = newCluster(s.Kube, s.Domain); err != nil {
		return nil, err
	}
	s.sources = append([]Source{s.cluster}, s.PrioritySources...)
	if s.Dynamic != nil {
		s.records = NewRecords(s.Dynamic, s.Clock, s.Log)
		s.sources = append(s.sources, s.records)
	}
	s.sources = append(s.sources, s.FallbackSources...)
	return s, nil
}

// Records returns the names that the cluster declares, for servers of other clusters. It is nil
// without Dynamic.
func (s *Server) Records() *Records { return s.records }

// Run serves until the context ends.
func (s *Server) Run(ctx context.Context) error {
	udp, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(s.Address))
	if err != nil {
		return fmt.Errorf("listening for DNS: %w", err)
	}
	tcp, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(s.Address))
	if err != nil {
		udp.Close()
		return fmt.Errorf("listening for DNS: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	if s.records != nil {
		group.Go(func() { s.records.Run(ctx) })
	}
	defer s.cluster.factory.Shutdown()
	// Until the cluster is known, the server does not answer, and clients retry: a negative answer
	// could be wrong.
	if !s.cluster.start(ctx) {
		udp.Close()
		tcp.Close()
		return nil
	}
	handler := dns.HandlerFunc(func(out dns.ResponseWriter, in *dns.Msg) { s.handle(ctx, out, in) })
	servers := []*dns.Server{{PacketConn: udp, Handler: handler}, {Listener: tcp, Handler: handler}}
	started, ended := make(chan struct{}, len(servers)), make(chan error, len(servers))
	for _, server := range servers {
		server.NotifyStartedFunc = func() { started <- struct{}{} }
		go func() { ended <- server.ActivateAndServe() }()
	}
	var trouble error
	for range servers {
		select {
		case <-started:
		case err := <-ended:
			trouble = errors.Join(trouble, err)
			ended <- nil
		}
	}
	if trouble == nil {
		<-ctx.Done()
	}
	cancel()
	for _, server := range servers {
		_ = server.Shutdown()
	}
	for range servers {
		trouble = errors.Join(trouble, <-ended)
	}
	return trouble
}

func (s *Server) handle(ctx context.Context, out dns.ResponseWriter, in *dns.Msg) {
	reply := s.reply(ctx, in)
	size := dns.MaxMsgSize
	if _, isUDP := out.RemoteAddr().(*net.UDPAddr); isUDP {
		size = dns.MinMsgSize
		if options := in.IsEdns0(); options != nil {
			size = max(size, int(options.UDPSize()))
			reply.SetEdns0(dns.DefaultMsgSize, false)
		}
	}
	reply.Truncate(size)
	if err := out.WriteMsg(reply); err != nil {
		s.Log.Debug("A client did not wait for its answer", "error", err)
	}
}

// reply answers one question.
func (s *Server) reply(ctx context.Context, in *dns.Msg) *dns.Msg {
	reply := new(dns.Msg).SetReply(in)
	reply.RecursionAvailable = true
	switch {
	case in.Opcode != dns.OpcodeQuery:
		reply.Rcode = dns.RcodeNotImplemented
		return reply
	case len(in.Question) != 1:
		reply.Rcode = dns.RcodeFormatError
		return reply
	case in.Question[0].Qclass != dns.ClassINET:
		reply.Rcode = dns.RcodeRefused
		return reply
	}
	question := in.Question[0]
	name := canonicalName(question.Name)
	for range maxChainLength {
		records, exists := s.resolve(name)
		if !exists {
			return s.resolveUpstream(ctx, reply, name, question.Qtype)
		}
		reply.Authoritative = true
		next := ""
		for _, record := range records {
			alias, isAlias := record.(*dns.CNAME)
			switch {
			case isAlias && question.Qtype != dns.TypeCNAME && question.Qtype != dns.TypeANY:
				reply.Answer = append(reply.Answer, record)
				next = alias.Target
			case question.Qtype == dns.TypeANY, record.Header().Rrtype == question.Qtype:
				reply.Answer = append(reply.Answer, record)
			}
		}
		if next == "" {
			if len(reply.Answer) == 0 || question.Qtype != reply.Answer[len(reply.Answer)-1].Header().Rrtype && question.Qtype != dns.TypeANY {
				reply.Ns = []dns.RR{s.soaRecord()}
			}
			// Clients expect the name as in their question.
			for i, record := range reply.Answer {
				if record.Header().Name == canonicalName(question.Name) {
					reply.Answer[i] = dns.Copy(record)
					reply.Answer[i].Header().Name = question.Name
				}
			}
			return reply
		}
		name = next
	}
	reply.Rcode = dns.RcodeServerFailure
	return reply
}

func (s *Server) resolve(name string) (records []dns.RR, exists bool) {
	for _, source := range s.sources {
		// A name without records here may have records in another source.
		found, there := source.Resolve(name)
		exists = exists || there
		if len(found) > 0 {
			return found, true
		}
	}
	return nil, exists
}

// resolveUpstream completes a reply with a name that no source has.
func (s *Server) resolveUpstream(ctx context.Context, reply *dns.Msg, name string, kind uint16) *dns.Msg {
	if s.Upstream == "" || dns.IsSubDomain(s.Domain, name) {
		reply.Authoritative, reply.Rcode, reply.Ns = true, dns.RcodeNameError, []dns.RR{s.soaRecord()}
		return reply
	}
	ask := new(dns.Msg).SetQuestion(name, kind)
	answer, _, err := (&dns.Client{Timeout: upstreamTimeout}).ExchangeContext(ctx, ask, s.Upstream)
	if err == nil && answer.Truncated {
		answer, _, err = (&dns.Client{Net: "tcp", Timeout: upstreamTimeout}).ExchangeContext(ctx, ask, s.Upstream)
	}
	if err != nil {
		s.Log.Debug("The upstream server does not answer", "name", name, "error", err)
		reply.Rcode = dns.RcodeServerFailure
		return reply
	}
	reply.Authoritative, reply.Rcode = false, answer.Rcode
	reply.Answer, reply.Ns = append(reply.Answer, answer.Answer...), answer.Ns
	return reply
}

// soaRecord returns the SOA record with the TTL of negative answers.
func (s *Server) soaRecord() dns.RR {
	top := recordHeader(s.Domain, dns.TypeSOA)
	top.Ttl = negativeTTL
	return &dns.SOA{Hdr: top, Ns: "ns.dns." + s.Domain, Mbox: "hostmaster." + s.Domain, Serial: 1, Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: negativeTTL}
}
