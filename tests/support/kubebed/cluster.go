package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	pause    = 20 * time.Millisecond
	patience = 2 * time.Minute // also for a machine that is busy with other tests
)

// startCluster starts the components in the order in which they need each other and writes
// bed.json. A component that ends is reported on the channel.
func startCluster(ctx context.Context, dir string, node []string, ended chan error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	storage, err := startStorage(filepath.Join(dir, "etcd"))
	if err != nil {
		return err
	}
	port, err := findPort()
	if err != nil {
		return err
	}
	credentials, err := writeCredentials(dir, fmt.Sprintf("https://127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	start := func(name string, arguments ...string) error {
		return startComponent(name, credentials.kubeconfig, arguments, ended)
	}
	if err := start("kube-apiserver", listServerFlags(dir, storage, port)...); err != nil {
		return err
	}
	if err := waitFor(ctx, ended, credentials.isServerReady); err != nil {
		return err
	}
	if err := start("kube-controller-manager", listControllerFlags(dir, credentials.kubeconfig)...); err != nil {
		return err
	}
	if err := start("kube-scheduler", listClientFlags(credentials.kubeconfig)...); err != nil {
		return err
	}
	if len(node) > 0 {
		if err := startChild(exec.Command(node[0], node[1:]...), credentials.kubeconfig, ended); err != nil {
			return err
		}
		if err := waitFor(ctx, ended, credentials.isNodeReady); err != nil {
			return err
		}
	}
	return credentials.describe(filepath.Join(dir, "bed.json"))
}

func listServerFlags(dir, storage string, port int) []string {
	return []string{
		"--etcd-servers=" + storage,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + filepath.Join(dir, "server.crt"),
		"--tls-private-key-file=" + filepath.Join(dir, "server.key"),
		"--client-ca-file=" + filepath.Join(dir, "ca.crt"),
		"--token-auth-file=" + filepath.Join(dir, "tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + filepath.Join(dir, "accounts.key"),
		"--service-account-signing-key-file=" + filepath.Join(dir, "accounts.key"),
		"--service-cluster-ip-range=10.0.0.0/16",
		"--endpoint-reconciler-type=none", // this server is not reached from inside the cluster
		"--kubelet-preferred-address-types=InternalIP",
		"--allow-privileged=true",
		// Tests of several processes must not wait for each other.
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=0", "--max-mutating-requests-inflight=0",
		"--profiling=false",
	}
}

func listControllerFlags(dir, kubeconfig string) []string {
	return append(listClientFlags(kubeconfig),
		"--service-account-private-key-file="+filepath.Join(dir, "accounts.key"),
		"--root-ca-file="+filepath.Join(dir, "ca.crt"),
		"--use-service-account-credentials=false",
		"--node-monitor-grace-period=10m", // a busy machine must not lose its only node
	)
}

func listClientFlags(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=1000", "--kube-api-burst=1000", "--profiling=false",
	}
}

// startComponent runs a component as a child of its own: several in one process quarrel about
// signal handlers and feature gates.
func startComponent(name, kubeconfig string, arguments []string, ended chan<- error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return startChild(exec.Command(self, append([]string{name}, arguments...)...), kubeconfig, ended)
}

func startChild(command *exec.Cmd, kubeconfig string, ended chan<- error) error {
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel's signal comes when this thread ends
		err := command.Start()
		started <- err
		if err == nil {
			ended <- fmt.Errorf("%s ended: %v", command.Args, command.Wait())
		}
	}()
	return <-started
}

// waitFor asks until the answer is yes, or until a component or this process ends.
func waitFor(ctx context.Context, ended <-chan error, isReady func(*http.Client) bool) error {
	insecure := &tls.Config{InsecureSkipVerify: true} // it asks only whether somebody is there
	transport := &http.Transport{TLSClientConfig: insecure}
	defer transport.CloseIdleConnections()
	client := &http.Client{Timeout: 2 * time.Second, Transport: transport}
	tooLate := time.After(patience)
	for !isReady(client) {
		select {
		case <-tooLate:
			return errors.New("the cluster was not ready in time")
		case <-ctx.Done():
			return errors.New("stopped before it was ready")
		case err := <-ended:
			return err
		case <-time.After(pause):
		}
	}
	return nil
}

func (c *credentials) isServerReady(client *http.Client) bool {
	return c.get(client, "/readyz", nil)
}

// isNodeReady says whether there is a node that the scheduler may use.
func (c *credentials) isNodeReady(client *http.Client) bool {
	var nodes struct {
		Items []struct {
			Spec   struct{ Taints []any }
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if !c.get(client, "/api/v1/nodes", &nodes) || len(nodes.Items) == 0 {
		return false
	}
	for _, condition := range nodes.Items[0].Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return len(nodes.Items[0].Spec.Taints) == 0
		}
	}
	return false
}

func (c *credentials) get(client *http.Client, path string, into any) bool {
	request, err := http.NewRequest(http.MethodGet, c.server+path, nil)
	if err != nil {
		return false
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	if into != nil && json.NewDecoder(response.Body).Decode(into) != nil {
		return false
	}
	return response.StatusCode == http.StatusOK
}

// startStorage starts etcd inside this process, without fsync, and returns its address.
func startStorage(dir string) (string, error) {
	port, err := findPort()
	if err != nil {
		return "", err
	}
	peer := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}
	client := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = dir, "error", true
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return "", err
	}
	<-server.Server.ReadyNotify()
	return "http://" + server.Clients[0].Addr().String(), nil
}

func findPort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
