// Package postgrestest runs a PostgreSQL server for tests: Debian's programs, without
// Debian's cluster, as an unprivileged user, on a socket in a temporary folder.
package postgrestest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stasisd/stasis/freeport"
)

// Password is the password of the server's role "stasis".
const Password = "p-a s%s"

// startDeadline limits how long a server takes to start.
const startDeadline = time.Minute

// Server is a running server.
type Server struct {
	dir  string // of the socket, the password and the data
	bin  string
	as   *syscall.Credential // nil: this process's own user
	args []string            // settings besides those of every server
	port int
	cmd  *exec.Cmd // nil while no process runs
	// ended is closed when the process has ended.
	ended chan struct{}
}

// Start starts a new server with an empty database "postgres". settings are further
// settings of postgresql.conf, such as "max_connections=20". The caller stops it.
func Start(settings ...string) (*Server, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		return nil, errors.Join(errors.New("PostgreSQL is not installed; run build/need postgresql"), err)
	}
	dir, err := os.MkdirTemp("", "pg-") // short: a socket's path has at most 107 bytes
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: found[len(found)-1], args: settings, port: 5432}
	if err = s.prepare(); err == nil {
		err = s.run()
	}
	if err == nil {
		err = s.hashOnce()
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// hashOnce has the server store the password with one iteration of SCRAM's hash instead of 4096,
// which take both sides most of the time of a connection. The exchange is the same (RFC 5802).
func (s *Server) hashOnce() error {
	const iterations = 1
	salt := []byte("the tests' salt.")
	salted, err := pbkdf2.Key(sha256.New, Password, salt, iterations, sha256.Size)
	if err != nil {
		return err
	}
	key := func(name string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(name)) // never fails
		return h.Sum(nil)
	}
	stored := sha256.Sum256(key("Client Key"))
	text := base64.StdEncoding.EncodeToString
	return s.Exec(context.Background(), "postgres", fmt.Sprintf("ALTER ROLE stasis PASSWORD 'SCRAM-SHA-256$%d:%s$%s:%s'",
		iterations, text(salt), text(stored[:]), text(key("Server Key"))))
}

// prepare makes the server's files.
func (s *Server) prepare() error {
	secret := filepath.Join(s.dir, "password")
	if err := os.WriteFile(secret, []byte(Password+"\n"), 0o600); err != nil {
		return err
	}
	if os.Geteuid() == 0 { // the server refuses root
		nobody, err := user.Lookup("nobody")
		if err != nil {
			return err
		}
		uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
		if err != nil {
			return err
		}
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		if err := errors.Join(os.Chown(s.dir, int(uid), int(uid)), os.Chown(secret, int(uid), int(uid))); err != nil {
			return err
		}
	}
	initdb := s.command("initdb", "--pgdata", s.data(), "--username", "stasis", "--pwfile", secret, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync", "--no-instructions")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// UseTLS makes the server take TLS connections at a free port of 127.0.0.1, with a
// certificate and its key (PEM), and returns the port. The server restarts.
func (s *Server) UseTLS(cert, key []byte) (port int, err error) {
	if port, err = freeport.Find(); err != nil {
		return 0, err
	}
	for name, content := range map[string][]byte{"server.crt": cert, "server.key": key} {
		path := filepath.Join(s.data(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return 0, err
		}
		if s.as != nil {
			if err := os.Chown(path, int(s.as.Uid), int(s.as.Gid)); err != nil {
				return 0, err
			}
		}
	}
	s.Kill()
	s.args = append(s.args, "ssl=on", "listen_addresses=127.0.0.1", "port="+strconv.Itoa(port))
	s.port = port
	return port, s.run()
}

// Listen makes the server take connections from the networks of this machine at an address,
// at port 5432. The server restarts.
func (s *Server) Listen(address string) error {
	rules, err := os.OpenFile(filepath.Join(s.data(), "pg_hba.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = rules.WriteString("host all all samenet scram-sha-256\n")
	if err := errors.Join(err, rules.Close()); err != nil {
		return err
	}
	s.Kill()
	s.args = append(s.args, "listen_addresses="+address)
	return s.run()
}

// URLAt returns the URL of a database at an address of [Server.Listen], with the password.
func (s *Server) URLAt(address, database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("stasis", Password), Host: net.JoinHostPort(address, strconv.Itoa(s.port)), Path: "/" + database}
	return u.String()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	// If the test is killed, the server ends too, and with it all its processes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Pdeathsig: syscall.SIGQUIT, Setpgid: true}
	return cmd
}

// run starts the server's process and waits until it takes connections.
func (s *Server) run() error {
	args := []string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "shared_buffers=32MB", "-c", "max_connections=400", "-c", "autovacuum=off"}
	for _, a := range s.args {
		args = append(args, "-c", a)
	}
	cmd := s.command("postgres", args...)
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has its own
	cmd.Stderr = log
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// The death signal comes when this thread ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		close(started)
		_ = cmd.Wait() // the log says why
		close(ended)
	}()
	if err := <-started; err != nil {
		return err
	}
	s.cmd, s.ended = cmd, ended
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ended:
			s.cmd = nil
			why, _ := os.ReadFile(log.Name())
			return fmt.Errorf("the server ended: %s", why)
		case <-ctx.Done():
			return fmt.Errorf("the server does not take connections: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// URL returns the URL of a database, with the password.
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("stasis", Password), Path: "/" + database,
		RawQuery: url.Values{"host": {s.dir}, "port": {strconv.Itoa(s.port)}}.Encode()}
	return u.String()
}

// Exec runs statements, each in its own transaction, in a database.
func (s *Server) Exec(ctx context.Context, database string, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return errors.Join(err, conn.Close(ctx))
		}
	}
	return conn.Close(ctx)
}

// Kill ends the server and all its connections at once, as a crash does.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGCONT)
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	<-s.ended
	s.cmd = nil
}

// Restart starts the server again after Kill, with the same files.
func (s *Server) Restart() error { return s.run() }

// Freeze stops every process of the server, so that it answers nothing. Thaw continues
// them.
func (s *Server) Freeze() error { return s.signal(syscall.SIGSTOP) }

// Thaw continues what Freeze stopped.
func (s *Server) Thaw() error { return s.signal(syscall.SIGCONT) }

// signal signals the server and its processes: each process of a connection has its own
// process group.
func (s *Server) signal(sig syscall.Signal) error {
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return err
	}
	errs := []error{s.cmd.Process.Signal(sig)}
	for _, stat := range all {
		b, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		var parent, pid int
		var state string
		after := b[bytes.LastIndexByte(b, ')')+1:]
		if _, err := fmt.Sscan(string(after), &state, &parent); err != nil || parent != s.cmd.Process.Pid {
			continue
		}
		if _, err := fmt.Sscan(string(b), &pid); err == nil {
			if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Stop ends the server and removes its files. It is idempotent.
func (s *Server) Stop() error {
	s.Kill()
	return os.RemoveAll(s.dir)
}
