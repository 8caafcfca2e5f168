// SPDX-License-Identifier: Apache-2.0

package podnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pergola-dev/pergola/hack/local/hold"
)

const (
	testTimeout = 30 * time.Second
	// holderEnv marks a test program that runs inside a holder.
	holderEnv = "PODNET_IN_HOLDER"
)

// TestMain runs the tests inside a holder, as the package requires.
func TestMain(m *testing.M) {
	hold.InitHolder()
	if os.Getenv(holderEnv) != "" || hold.CheckSupport() != nil {
		os.Exit(m.Run())
	}
	code, err := runInHolder()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runInHolder() (code int, err error) {
	dir, err := os.MkdirTemp("", "podnet")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	holder, err := hold.Ensure(context.Background(), dir, self)
	if err != nil {
		return 0, err
	}
	defer func() {
		if stopErr := holder.Stop(context.Background()); err == nil {
			err = stopErr
		}
	}()
	return holder.Run(context.Background(), hold.Command{
		Path: self, Args: os.Args[1:], Env: append(os.Environ(), holderEnv+"=1"),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	})
}

// openNetwork opens a Network and checks at the end that it leaves nothing behind.
func openNetwork(t *testing.T) *Network {
	t.Helper()
	if os.Getenv(holderEnv) == "" {
		t.Skip(hold.CheckSupport())
	}
	folder := filepath.Join(t.TempDir(), "netns")
	network, err := Open(folder)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, network.Close())
		assert.NoDirExists(t, folder)
		assertNothingLeft(t, folder)
	})
	return network
}

func assertNothingLeft(t *testing.T, folder string) {
	t.Helper()
	links, err := netlink.LinkList()
	require.NoError(t, err)
	assert.Len(t, links, 1, "only the loopback device")
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	require.NoError(t, err)
	for _, route := range routes {
		assert.Contains(t, []string{"127.0.0.0/8", "127.0.0.1/32", "127.255.255.255/32", "169.254.1.1/32"}, route.Dst.String())
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), folder)
}

func parseIP(text string) netip.Addr { return netip.MustParseAddr(text) }

func add(t *testing.T, network *Network, name, address string) *Pod {
	t.Helper()
	pod, err := network.Add(name, parseIP(address), Options{})
	require.NoError(t, err)
	return pod
}

// callInPod calls a function in a pod, or in main if pod is nil.
func callInPod(t *testing.T, pod *Pod, call func() error) {
	t.Helper()
	if pod == nil {
		require.NoError(t, call())
		return
	}
	require.NoError(t, RunInside(pod.NetNS, call))
}

// serveInPod answers HTTP requests in a pod with a name and the client's address.
func serveInPod(t *testing.T, pod *Pod, address, name string) {
	t.Helper()
	var listener net.Listener
	callInPod(t, pod, func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		client, _, _ := net.SplitHostPort(request.RemoteAddr)
		_, _ = io.WriteString(w, name+" to "+client)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// getFromPod sends a request from a pod.
func getFromPod(t *testing.T, pod *Pod, address string) (answer string, err error) {
	t.Helper()
	var conn net.Conn
	callInPod(t, pod, func() error {
		conn, err = net.DialTimeout("tcp", address, testTimeout)
		return nil
	})
	if err != nil {
		return "", err
	}
	client := &http.Client{Timeout: testTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}}
	response, err := client.Get("http://" + address)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return string(data), err
}

func TestConnectivity(t *testing.T) {
	network := openNetwork(t)
	require.NoError(t, network.AddLocalRange(netip.MustParsePrefix("10.64.0.7/16")))
	require.NoError(t, network.AddLocalRange(netip.MustParsePrefix("10.64.0.0/16")), "twice is harmless")
	one, two := add(t, network, "one", "10.0.0.1"), add(t, network, "two", "10.0.255.255")
	serveInPod(t, one, ":443", "one")
	serveInPod(t, two, "0.0.0.0:443", "two")
	serveInPod(t, nil, "10.64.1.2:443", "service")
	serveInPod(t, two, "127.0.0.1:80", "two itself")
	serveInPod(t, two, "[::1]:80", "two itself by IPv6")
	for _, test := range []struct {
		name, address, want string
		from                *Pod
	}{
		{"main to pod", "10.0.0.1:443", "one to 169.254.1.1", nil},
		{"main to the other", "10.0.255.255:443", "two to 169.254.1.1", nil},
		{"pod to pod", "10.0.255.255:443", "two to 10.0.0.1", one},
		{"and back", "10.0.0.1:443", "one to 10.0.255.255", two},
		{"pod to itself", "10.0.0.1:443", "one to 10.0.0.1", one},
		{"pod to Service", "10.64.1.2:443", "service to 10.0.0.1", one},
		{"main to Service", "10.64.1.2:443", "service to 10.64.1.2", nil},
		{"within a pod", "127.0.0.1:80", "two itself to 127.0.0.1", two},
		{"within a pod, IPv6", "[::1]:80", "two itself by IPv6 to ::1", two},
		{"dual stack listener", "[::1]:443", "one to ::1", one},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := getFromPod(t, test.from, test.address)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
	_, err := getFromPod(t, one, "127.0.0.1:80")
	assert.ErrorContains(t, err, "refused", "pods do not share loopback")
	_, err = getFromPod(t, one, "10.64.1.2:444")
	assert.ErrorContains(t, err, "refused")

	require.NoError(t, two.Close())
	_, err = getFromPod(t, one, "10.0.255.255:443")
	assert.Error(t, err)
	again := add(t, network, "two", "10.0.255.255")
	serveInPod(t, again, ":443", "again")
	got, err := getFromPod(t, one, "10.0.255.255:443")
	require.NoError(t, err)
	assert.Equal(t, "again to 10.0.0.1", got)
}

func TestAddErrors(t *testing.T) {
	network := openNetwork(t)
	require.NoError(t, network.AddLocalRange(netip.MustParsePrefix("10.64.0.0/16")))
	add(t, network, "one", "10.0.0.1")
	for name, test := range map[string]struct {
		pod, ip, want string
		options       Options
	}{
		"same name":       {"one", "10.0.0.2", "file exists", Options{}},
		"same address":    {"two", "10.0.0.1", "another pod's", Options{}},
		"Service address": {"two", "10.64.1.1", "in the range 10.64.0.0/16", Options{}},
		"IPv6":            {"two", "::1", "not one of IPv4", Options{}},
		"bad name":        {"a/b", "10.0.0.2", "cannot be the name", Options{}},
		"parent":          {"..", "10.0.0.2", "cannot be the name", Options{}},
		"sysctl":          {"two", "10.0.0.2", "kernel.domainname is not one of a network", Options{Sysctls: map[string]string{"kernel.domainname": "x"}}},
		"unknown sysctl":  {"two", "10.0.0.2", "net.no.such: open", Options{Sysctls: map[string]string{"net.no.such": "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := network.Add(test.pod, parseIP(test.ip), test.options)
			assert.ErrorContains(t, err, test.want)
			names, err := network.PodNames()
			require.NoError(t, err)
			assert.Equal(t, []string{"one"}, names, "nothing half made")
			links, err := netlink.LinkList()
			require.NoError(t, err)
			assert.Len(t, links, 2)
		})
	}
	assert.Error(t, network.AddLocalRange(netip.MustParsePrefix("fd00::/64")))
	assert.Error(t, network.Remove("../one"))
	serveInPod(t, nil, "169.254.1.1:1", "still works")
	one := &Pod{Name: "one", NetNS: network.path("one"), network: network}
	got, err := getFromPod(t, one, "169.254.1.1:1")
	require.NoError(t, err)
	assert.Equal(t, "still works to 10.0.0.1", got)
}

func TestSysctls(t *testing.T) {
	network := openNetwork(t)
	pod, err := network.Add("one", parseIP("10.0.0.1"), Options{Sysctls: map[string]string{"net.ipv4.tcp_fin_timeout": "17"}})
	require.NoError(t, err)
	read := func(name string) (value string) {
		callInPod(t, pod, func() error {
			data, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
			value = strings.Join(strings.Fields(string(data)), " ")
			return err
		})
		return value
	}
	assert.Equal(t, "17", read("tcp_fin_timeout"))
	assert.Equal(t, "0", read("ip_unprivileged_port_start"))
	assert.Contains(t, []string{"0 0", "0 2147483647"}, read("ping_group_range"))
}

// TestThreadNamespaces checks that no thread stays in a pod's namespace and that the process is
// never seen in one.
func TestThreadNamespaces(t *testing.T) {
	network := openNetwork(t)
	main, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			pod, err := network.Add(fmt.Sprint("pod-", i), netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), Options{})
			if !assert.NoError(t, err) {
				return
			}
			assert.NoError(t, RunInside(pod.NetNS, func() error {
				inside, err := os.Readlink("/proc/thread-self/ns/net")
				assert.NotEqual(t, main, inside)
				return err
			}))
		})
	}
	all.Wait()
	assert.Eventually(t, func() bool {
		threads, err := filepath.Glob("/proc/self/task/*/ns/net")
		if err != nil {
			return false
		}
		for _, thread := range threads {
			if namespace, err := os.Readlink(thread); err == nil && namespace != main {
				return false
			}
		}
		return true
	}, testTimeout, time.Millisecond)
	first, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	assert.Equal(t, main, first)
	assert.ErrorContains(t, RunInside("/no/such", nil), "opening network namespace")
}

// TestNetworksOfEarlierProcess checks that a Network finds and removes the pods of an earlier one.
func TestNetworksOfEarlierProcess(t *testing.T) {
	former := openNetwork(t)
	add(t, former, "one", "10.0.0.1")
	add(t, former, "two", "10.0.0.2")
	// A holder that has ended leaves only a file.
	require.NoError(t, os.WriteFile(former.path("three"), nil, 0o600))
	network, err := Open(former.folder)
	require.NoError(t, err)
	names, err := network.PodNames()
	require.NoError(t, err)
	require.Equal(t, []string{"one", "three", "two"}, names)
	for _, name := range names {
		require.NoError(t, network.Remove(name))
		require.NoError(t, network.Remove(name), "twice is harmless")
	}
	assertNothingLeft(t, network.folder)
	add(t, network, "one", "10.0.0.1")
	require.NoError(t, network.Close())
}

func TestHundredPods(t *testing.T) {
	network := openNetwork(t)
	require.NoError(t, network.AddLocalRange(netip.MustParsePrefix("10.64.0.0/16")))
	serveInPod(t, nil, "10.64.0.10:53", "names")
	const pods = 100
	all := make([]*Pod, pods)
	start := time.Now()
	var work sync.WaitGroup
	for i := range pods {
		work.Go(func() {
			var err error
			all[i], err = network.Add(fmt.Sprint("pod-", i), netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}), Options{})
			assert.NoError(t, err)
		})
	}
	work.Wait()
	require.False(t, t.Failed())
	t.Logf("%d pods in %s", pods, time.Since(start))
	for i, pod := range all {
		serveInPod(t, pod, ":443", pod.Name)
		got, err := getFromPod(t, pod, "10.64.0.10:53")
		require.NoError(t, err)
		assert.Equal(t, "names to "+pod.IP.String(), got)
		got, err = getFromPod(t, pod, all[i/2].IP.String()+":443")
		require.NoError(t, err)
		assert.Equal(t, all[i/2].Name+" to "+pod.IP.String(), got)
	}
	start = time.Now()
	require.NoError(t, network.Close())
	t.Logf("removed in %s", time.Since(start))
}
