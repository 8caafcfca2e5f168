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
	namespace = "garden"
	name      = "bench"
	access    = "gardener-internal"
	ageKey    = "landscape-age"
	push      = "landscape-push"
)

// patience limits each wait.
const patience = 8 * time.Minute

// token is the token of the receiver; it is used on this machine only.
const token = "a-token-of-the-benchmark"

// world is the environment of the operator.
type world struct {
	arguments
	runtime, virtual       *door
	repository             *repository
	client, virtualClient  client.Client
	kubeconfig, log, clone string
	operator               *process.Process
	hooks                  *receiver.Client
	starts, changes, asked int
}

func newWorld(ctx context.Context, a arguments) (*world, error) {
	w := &world{arguments: a, log: filepath.Join(a.work, "operator.log"), kubeconfig: filepath.Join(a.work, "operator.kubeconfig"), clone: filepath.Join(a.work, "clone")}
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

func (w *world) close() {
	if w.operator != nil {
		w.operator.Kill()
	}
	w.repository.Close()
	for _, d := range []*door{w.runtime, w.virtual} {
		d.CloseClientConnections()
		d.Close()
	}
}

// connect returns a door to a cluster, and a client that bypasses it.
func connect(kubeconfig string) (*door, client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1
	d, err := newDoor(config)
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
func (w *world) prepare(ctx context.Context) error {
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
	for secret, data := range map[string]map[string][]byte{access: {"kubeconfig": through}, ageKey: {"age.agekey": key}, push: {"token": []byte(token)}} {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret}, Data: data})
	}
	for _, o := range objects {
		if err := w.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %s: %w", o.GetName(), err)
		}
	}
	if _, err := git(ctx, "-c", uncounted, "clone", "-q", w.repository.address(), w.clone); err != nil {
		return err
	}
	return nil
}

// start starts the operator and waits until it listens.
func (w *world) start(ctx context.Context) error {
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
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		if err := w.operator.Alive(); err != nil {
			return false, err
		}
		address, err := w.listening()
		if address == "" {
			return false, err
		}
		_, port, _ := strings.Cut(address, "]:")
		w.hooks = &receiver.Client{URL: "http://127.0.0.1:" + port, Token: []byte(token), HTTP: &http.Client{}, Clock: clock.RealClock{}}
		return true, nil
	})
}

// listening reads the address of the operator's receivers from the log.
func (w *world) listening() (string, error) {
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

// follow creates the Landscape.
func (w *world) follow(ctx context.Context, interval time.Duration) error {
	l := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	l.Spec.Source = &landscapev1alpha1.Source{URL: w.repository.address(), Interval: &metav1.Duration{Duration: interval}}
	l.Spec.Decryption = &landscapev1alpha1.Decryption{SecretRef: landscapev1alpha1.LocalSecretReference{Name: ageKey}}
	l.Spec.Receivers = []landscapev1alpha1.Receiver{{Name: "push", Type: landscapev1alpha1.ReceiverHMAC, SecretRef: landscapev1alpha1.LocalSecretReference{Name: push}}}
	return w.client.Create(ctx, l)
}

// poll sets the polling interval of the source.
func (w *world) poll(ctx context.Context, interval time.Duration) error {
	return w.change(ctx, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Interval = &metav1.Duration{Duration: interval}
	})
}

// demandReview requires reviews of deletions and recreations from now on, and waits until the
// operator has handled that.
func (w *world) demandReview(ctx context.Context) error {
	if err := w.change(ctx, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Review = landscapev1alpha1.ReviewRequired }); err != nil {
		return err
	}
	commit, err := git(ctx, "-C", w.repository.work, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	request, err := w.request(ctx)
	if err != nil {
		return err
	}
	return w.applied(ctx, commit, request)
}

func (w *world) change(ctx context.Context, change func(*landscapev1alpha1.LandscapeSpec)) error {
	l := &landscapev1alpha1.Landscape{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, l); err != nil {
		return err
	}
	before := l.DeepCopy()
	change(&l.Spec)
	return w.client.Patch(ctx, l, client.MergeFrom(before))
}

// request requests a sync, as a person does, and returns the value for lastHandledSyncRequest.
func (w *world) request(ctx context.Context) (string, error) {
	l := &landscapev1alpha1.Landscape{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, l); err != nil {
		return "", err
	}
	w.asked++
	before, value := l.DeepCopy(), fmt.Sprintf("request %d", w.asked)
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, landscapev1alpha1.AnnotationSyncRequested, value)
	return value, w.client.Patch(ctx, l, client.MergeFrom(before))
}

// applied waits until the status says that a commit is applied and that the request was handled.
// The error has the last result.
func (w *world) applied(ctx context.Context, commit, request string) error {
	l := &landscapev1alpha1.Landscape{}
	said := ""
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if err := w.operator.Alive(); err != nil {
			return false, err
		}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, l); err != nil {
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
