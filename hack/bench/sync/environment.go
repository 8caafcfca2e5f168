// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pergola-dev/pergola/api/crds"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/hack/bench/process"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/receiver"
)

// Names in the runtime cluster.
const (
	namespace     = "garden"
	landscapeName = "bench"
	accessSecret  = "gardener-internal"
	ageKeySecret  = "landscape-age"
	pushSecret    = "landscape-push"
)

// waitTimeout limits each wait.
const waitTimeout = 8 * time.Minute

// receiverToken is the token of the receiver; it is used only on this machine.
const receiverToken = "a-token-of-the-benchmark"

// environment is the environment of the operator.
type environment struct {
	arguments
	runtime, virtual              *countingProxy
	repository                    *repository
	client, virtualClient         client.Client
	kubeconfig, log, clone        string
	operator                      *process.Process
	receiverClient                *receiver.Client
	starts, changes, syncRequests int
}

func newEnvironment(ctx context.Context, a arguments) (*environment, error) {
	w := &environment{arguments: a, log: filepath.Join(a.work, "operator.log"), kubeconfig: filepath.Join(a.work, "operator.kubeconfig"), clone: filepath.Join(a.work, "clone")}
	var err error
	if w.runtime, w.client, err = connect(a.runtime); err != nil {
		return nil, fmt.Errorf("runtime cluster: %w", err)
	}
	if w.virtual, w.virtualClient, err = connect(a.virtual); err != nil {
		return nil, fmt.Errorf("virtual garden: %w", err)
	}
	if w.repository, err = newRepository(ctx, filepath.Join(a.work, "git"), a.landscape); err != nil {
		return nil, err
	}
	through, err := w.runtime.kubeconfig()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(w.kubeconfig, through, 0o600); err != nil {
		return nil, err
	}
	return w, w.prepare(ctx)
}

func (w *environment) close() {
	if w.operator != nil {
		w.operator.Kill()
	}
	w.repository.Close()
	for _, d := range []*countingProxy{w.runtime, w.virtual} {
		d.CloseClientConnections()
		d.Close()
	}
}

// connect returns a door to a cluster, and a client that bypasses it.
func connect(kubeconfig string) (*countingProxy, client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1
	d, err := newCountingProxy(config)
	if err != nil {
		return nil, nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), landscapev1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, nil, err
	}
	c, err := client.New(rest.CopyConfig(config), client.Options{Scheme: scheme})
	return d, c, err
}

// prepare creates the objects of an installation in the runtime cluster, and clones the repository.
func (w *environment) prepare(ctx context.Context) error {
	through, err := w.virtual.kubeconfig()
	if err != nil {
		return err
	}
	key, err := os.ReadFile(w.key)
	if err != nil {
		return err
	}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	for _, definition := range crds.ByGroup(landscapev1alpha1.SchemeGroupVersion.Group) {
		objects = append(objects, definition)
	}
	for secret, data := range map[string]map[string][]byte{accessSecret: {"kubeconfig": through}, ageKeySecret: {"age.agekey": key}, pushSecret: {"token": []byte(receiverToken)}} {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret}, Data: data})
	}
	for _, o := range objects {
		if err := w.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %s: %w", o.GetName(), err)
		}
	}
	if _, err := git(ctx, "-c", benchHeaderConfig, "clone", "-q", w.repository.cloneURL(), w.clone); err != nil {
		return err
	}
	return nil
}

// start starts the operator and waits until it listens.
func (w *environment) start(ctx context.Context) error {
	w.starts++
	command := []string{w.arguments.operator, "operator", "--kubeconfig", w.kubeconfig, "--cache-dir", filepath.Join(w.work, "cache"), "--health-port", "-1",
		"--metrics-port", "-1", "--receiver-port", "0"}
	if w.profile != "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		command = []string{self, "operator", w.kubeconfig, filepath.Join(w.work, "cache"), filepath.Join(w.profile, fmt.Sprintf("sync-%d", w.starts))}
	}
	if err := os.Remove(w.log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var err error
	if w.operator, err = process.Start(w.log, nil, command...); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, waitTimeout, true, func(context.Context) (bool, error) {
		if err := w.operator.CheckAlive(); err != nil {
			return false, err
		}
		address, err := w.receiverAddress()
		if address == "" {
			return false, err
		}
		_, port, _ := strings.Cut(address, "]:")
		w.receiverClient = &receiver.Client{URL: "http://127.0.0.1:" + port, Token: []byte(receiverToken), HTTP: &http.Client{}, Clock: clock.RealClock{}}
		return true, nil
	})
}

// receiverAddress reads the address of the operator's receivers from the log.
func (w *environment) receiverAddress() (string, error) {
	file, err := os.Open(w.log)
	if err != nil {
		return "", err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var line struct{ Msg, Receivers string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			return line.Receivers, nil
		}
	}
	return "", nil
}

// createLandscape creates the Landscape.
func (w *environment) createLandscape(ctx context.Context, interval time.Duration) error {
	l := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: landscapeName}}
	l.Spec.Source = &landscapev1alpha1.Source{URL: w.repository.cloneURL(), Interval: &metav1.Duration{Duration: interval}}
	l.Spec.Decryption = &landscapev1alpha1.Decryption{SecretRef: landscapev1alpha1.LocalSecretReference{Name: ageKeySecret}}
	l.Spec.Receivers = []landscapev1alpha1.Receiver{{Name: "push", Type: landscapev1alpha1.ReceiverHMAC, SecretRef: landscapev1alpha1.LocalSecretReference{Name: pushSecret}}}
	return w.client.Create(ctx, l)
}

// setPollInterval sets the polling interval of the source.
func (w *environment) setPollInterval(ctx context.Context, interval time.Duration) error {
	return w.changeSpec(ctx, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Interval = &metav1.Duration{Duration: interval}
	})
}

// requireReview requires reviews of deletions and recreations from now on, and waits until the
// operator has handled that.
func (w *environment) requireReview(ctx context.Context) error {
	if err := w.changeSpec(ctx, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Review = landscapev1alpha1.ReviewRequired }); err != nil {
		return err
	}
	commit, err := git(ctx, "-C", w.repository.work, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	request, err := w.requestSync(ctx)
	if err != nil {
		return err
	}
	return w.waitUntilApplied(ctx, commit, request)
}

func (w *environment) changeSpec(ctx context.Context, change func(*landscapev1alpha1.LandscapeSpec)) error {
	l := &landscapev1alpha1.Landscape{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: landscapeName}, l); err != nil {
		return err
	}
	before := l.DeepCopy()
	change(&l.Spec)
	return w.client.Patch(ctx, l, client.MergeFrom(before))
}

// requestSync requests a sync, as a person does, and returns the value for lastHandledSyncRequest.
func (w *environment) requestSync(ctx context.Context) (string, error) {
	l := &landscapev1alpha1.Landscape{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: landscapeName}, l); err != nil {
		return "", err
	}
	w.syncRequests++
	before, value := l.DeepCopy(), fmt.Sprintf("request %d", w.syncRequests)
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, landscapev1alpha1.AnnotationSyncRequested, value)
	return value, w.client.Patch(ctx, l, client.MergeFrom(before))
}

// waitUntilApplied waits until the status says that a commit is applied and that the request was
// handled. The error has the last result.
func (w *environment) waitUntilApplied(ctx context.Context, commit, request string) error {
	l := &landscapev1alpha1.Landscape{}
	said := ""
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		if err := w.operator.CheckAlive(); err != nil {
			return false, err
		}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: landscapeName}, l); err != nil {
			return false, err
		}
		if len(l.Status.History) > 0 {
			h := l.Status.History[0]
			said = fmt.Sprintf("%s: %s", h.Result, h.Message)
		}
		reconciling := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReconciling)
		heard := request == "" || l.Status.LastHandledSyncRequest == request
		return strings.HasSuffix(l.Status.LastAppliedRevision, commit) && reconciling == nil && heard, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w: %s", commit, err, said)
	}
	return nil
}
