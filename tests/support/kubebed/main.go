// Command kubebed is a Kubernetes control plane for tests: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler of one release, on loopback, in one folder.
//
//	kubebed [--detach] --dir DIR [--users FILE] [-- NODE ...]    run a cluster until its last user is gone
//	kubebed kube-apiserver|kube-controller-manager|kube-scheduler ...    run one component
//
// When the cluster is ready, DIR/bed.json holds its address and credentials and one line is
// printed; with --detach, this process then ends and the cluster goes on without it. NODE is a
// program that acts as the cluster's node; it finds the cluster by KUBECONFIG.
// A user is a process that holds a shared lock (flock) on FILE. The kernel drops the lock of a
// killed process, so the cluster ends with its users however they end. It then removes the folder
// of FILE, or DIR if there is no FILE.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	if len(os.Args) > 1 {
		if newCommand, known := components[os.Args[1]]; known {
			command := newCommand()
			command.SetArgs(os.Args[2:])
			os.Exit(cli.Run(command))
		}
	}
	dir := flag.String("dir", "", "folder of the cluster")
	users := flag.String("users", "", "file that each user holds a shared lock on")
	detach := flag.Bool("detach", false, "end when the cluster is ready")
	flag.Parse()
	if *dir == "" {
		fail(errors.New("usage: kubebed [--detach] --dir DIR [--users FILE] [-- NODE ...]"))
	}
	var err error
	if *detach {
		err = startDetached(append([]string{"--dir", *dir, "--users", *users, "--"}, flag.Args()...))
	} else {
		err = runCluster(*dir, *users, flag.Args())
	}
	if err != nil {
		fail(err)
	}
}

// startDetached runs the cluster in a session of its own and returns when it is ready.
func startDetached(arguments []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(self, arguments...)
	command.Stderr, command.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Setsid: true}
	said, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); line != "ready\n" {
		return errors.Join(errors.New("the cluster did not start"), err)
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kubebed:", err)
	os.Exit(1)
}

// runCluster starts the cluster, says that it is ready and returns when it is no longer wanted.
// The components are children that the kernel kills with this process.
func runCluster(dir, users string, node []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ended := make(chan error, 8)
	if err := startCluster(ctx, dir, node, ended); err != nil {
		return err
	}
	fmt.Println("ready")
	leftover := dir
	if users != "" {
		leftover = filepath.Dir(users)
		go func() { ended <- waitForLastUser(users) }()
	}
	select {
	case <-ctx.Done():
	case err := <-ended:
		if err != nil {
			return err
		}
	}
	return os.RemoveAll(leftover)
}

// waitForLastUser returns when no process holds a shared lock on the file any more. The exclusive
// lock is kept until this process ends: a new user waits for that and then finds the folder gone.
func waitForLastUser(users string) error {
	file, err := os.OpenFile(users, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			return err
		}
	}
}
