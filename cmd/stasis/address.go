package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/snapshot"
)

// addressFile is where a running daemon records its address, in the data directory. The
// daemon holds a lock on it as long as it listens.
const addressFile = "address"

// recordedAddress is the content of addressFile.
type recordedAddress struct {
	URL string `json:"url"` // without a slash at the end
	// Network is the daemon's network namespace. In another one, a different program may
	// have the same address.
	Network string `json:"network"`
}

// addressRecord is the recorded address of this daemon.
type addressRecord struct {
	file *os.File
	path string
}

// recordAddress records the address of a listener, for verbs on the same machine. scheme is
// http or https. The caller withdraws the record before it closes the listener.
func recordAddress(ctx context.Context, dir, scheme string, at net.Addr) (_ *addressRecord, err error) {
	r := &addressRecord{path: filepath.Join(dir, addressFile)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.withdraw())
		}
	}()
	body, err := json.Marshal(recordedAddress{URL: scheme + "://" + reachable(at), Network: networkNamespace()})
	if err != nil {
		return nil, err
	}
	if r.file, err = os.OpenFile(r.path, os.O_CREATE|os.O_RDWR|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600); err != nil {
		return nil, err
	}
	if err := lockExclusively(ctx, r.file); err != nil {
		return nil, err
	}
	_, err = r.file.Write(body)
	return r, err
}

// lockExclusively waits for a lock. Only verbs that look whether it is held can have it, for
// a moment.
func lockExclusively(ctx context.Context, file *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// withdraw removes the record, and then its lock. It is idempotent.
func (r *addressRecord) withdraw() error {
	if r == nil || r.file == nil {
		return nil
	}
	err := errors.Join(os.Remove(r.path), r.file.Close())
	r.file = nil
	return err
}

// reachable returns the address at which this machine reaches a listener.
func reachable(at net.Addr) string {
	addr, err := netip.ParseAddrPort(at.String())
	if err != nil || !addr.Addr().IsUnspecified() {
		return at.String()
	}
	host := netip.MustParseAddr("127.0.0.1")
	if addr.Addr().Is6() {
		host = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(host, addr.Port()).String()
}

// networkNamespace names this process's network namespace; "" if that is unknown.
func networkNamespace() string {
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return ""
	}
	return name
}

// localDaemon is the daemon that runs on a data directory of this machine.
type localDaemon struct {
	dir  string
	at   recordedAddress
	file *os.File // with the daemon's lock
}

// findLocal returns the daemon of a data directory; nil if none runs that this user may
// know of.
func findLocal(dir string) *localDaemon {
	file, err := os.OpenFile(filepath.Join(dir, addressFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	l := &localDaemon{dir: dir, file: file}
	at, err := l.recorded()
	if err != nil || at.URL == "" || at.Network == "" || at.Network != networkNamespace() || !l.runs() {
		_ = file.Close() // it was only read
		return nil
	}
	l.at = at
	return l
}

func (l *localDaemon) recorded() (at recordedAddress, err error) {
	body := make([]byte, 4096)
	n, err := l.file.ReadAt(body, 0)
	if n == 0 {
		return at, err
	}
	return at, json.Unmarshal(body[:n], &at)
}

// runs reports whether the daemon still runs at the recorded address: it holds its lock.
func (l *localDaemon) runs() bool {
	err := syscall.Flock(int(l.file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return false
	}
	at, err := l.recorded()
	return err == nil && (l.at.URL == "" || at == l.at)
}

// key reads the daemon's api-key. It follows no link, and takes no file of another user than
// the daemon's: root may work in a directory of an ordinary user.
func (l *localDaemon) key() (key string, err error) {
	path := filepath.Join(l.dir, keyFile)
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", noKey(err, "the key of the daemon on this machine cannot be read")
	}
	defer func() { _ = file.Close() }() // it is only read
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	daemon, err := l.file.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || ownerOf(info) != ownerOf(daemon) {
		return "", noKey(nil, path+" is not a file of the user who runs the daemon")
	}
	body := make([]byte, snapshot.MaxKeyFile)
	n, err := file.Read(body)
	if key = strings.TrimSpace(string(body[:n])); key == "" {
		return "", noKey(err, path+" is empty")
	}
	return key, nil
}

func ownerOf(info os.FileInfo) uint32 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Uid
	}
	return ^uint32(0)
}
