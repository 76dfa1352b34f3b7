// Package nodes runs a cluster on one machine for programs that try it: real daemons, each in a
// network namespace, on one PostgreSQL server and one S3 server, behind a load balancer.
package nodes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// hub is the address at which everything except the nodes listens.
const hub = "10.77.0.1"

// entered is the variable that says that the program is in its namespaces.
const entered = "STASIS_NODES_ENTERED"

// namesFolder is where ip keeps the names of network namespaces.
const namesFolder = "/run/netns"

// Enter moves this program to new network and mount namespaces: it executes the program again.
// All networks of its clusters end with it, however it ends. Call it before anything else. Only
// root may.
func Enter() error {
	if os.Getenv(entered) != "" {
		return prepare()
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("network namespaces cannot be made; run this as root: %w", err)
	}
	env := []string{entered + "=1"}
	for _, v := range os.Environ() { // no proxy is reached from here
		if name, _, _ := strings.Cut(v, "="); !strings.HasSuffix(strings.ToLower(name), "_proxy") {
			env = append(env, v)
		}
	}
	return unix.Exec("/proc/self/exe", os.Args, env)
}

// prepare makes the bridge. Names of namespaces are visible only to this program.
func prepare() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := os.MkdirAll(namesFolder, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", namesFolder, "tmpfs", 0, ""); err != nil {
		return err
	}
	return ip(context.Background(), "link set lo up", "link add hub type bridge", "addr add "+hub+"/24 dev hub", "link set hub up")
}

// ip runs commands of ip(8).
func ip(ctx context.Context, commands ...string) error {
	for _, c := range commands {
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", c, err, out)
		}
	}
	return nil
}

// space is the network namespace of a node.
type space struct{ name, address string }

// newSpace makes the namespace of the node with a number, connected to the bridge.
func newSpace(ctx context.Context, name string, number int) (space, error) {
	s := space{name, fmt.Sprintf("10.77.0.%d", 11+number)}
	return s, ip(ctx, "netns add "+name, "link add to-"+name+" type veth peer name eth0 netns "+name, "link set to-"+name+" master hub up",
		"-n "+name+" addr add "+s.address+"/24 dev eth0", "-n "+name+" link set eth0 up", "-n "+name+" link set lo up")
}

// remove removes the namespace and its network.
func (s space) remove(ctx context.Context) error {
	return ip(ctx, "netns del "+s.name)
}

// enter returns a command that runs another one in the namespace.
func (s space) enter() []string {
	return []string{"nsenter", "--net=" + namesFolder + "/" + s.name, "--"}
}

// cut drops all packets to and from addresses, such as "10.77.0.1:5432" or "10.77.0.1", until heal.
func (s space) cut(ctx context.Context, to ...string) error {
	var rules, back []string
	for _, a := range to {
		address, port, one := strings.Cut(a, ":")
		out, in := "ip daddr "+address, "ip saddr "+address
		if one {
			out, in = out+" tcp dport "+port, in+" tcp sport "+port
		}
		rules, back = append(rules, out+" drop"), append(back, in+" drop")
	}
	return s.nft(ctx, fmt.Sprintf("table ip cut {\n chain out { type filter hook output priority -200; %s; }\n chain in { type filter hook input priority -200; %s; }\n}\n",
		strings.Join(rules, "; "), strings.Join(back, "; ")))
}

// heal ends a cut.
func (s space) heal(ctx context.Context) error { return s.nft(ctx, "delete table ip cut\n") }

func (s space) nft(ctx context.Context, rules string) error {
	command := append(s.enter(), "nft", "-f", "-")
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	return nil
}
