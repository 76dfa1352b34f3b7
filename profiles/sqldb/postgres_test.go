package sqldb_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/postgrestest"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// ownServer starts a server that the test may kill.
func ownServer(t *testing.T) *postgrestest.Server {
	t.Helper()
	s, err := postgrestest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for: %s", what)
		}
	}
}

// A server that crashes makes the catalogue unavailable, and a server that returns makes it
// available, with all that was written.
func TestServerReturns(t *testing.T) {
	s := ownServer(t)
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: s.URL("postgres"), Now: time.Now, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	fill(t, db)
	var wg sync.WaitGroup
	for range 8 { // so that the pools have several connections
		wg.Go(func() { _, _ = db.Sessions.Session(t.Context(), "s") })
	}
	wg.Wait()
	s.Kill()
	for range 20 {
		_, err := db.Sessions.Session(t.Context(), "s")
		write := db.Keys.CreateKey(t.Context(), profiles.Key{ID: "k"})
		if !fault.Is(err, fault.CatalogueUnavailable) || !fault.Is(write, fault.CatalogueUnavailable) {
			t.Fatalf("without a server: %v; %v", err, write)
		}
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, "the catalogue takes writes again", func() bool {
		return db.Keys.CreateKey(t.Context(), profiles.Key{ID: "k"}) == nil
	})
	until(t, "the catalogue can be read again", func() bool { return db.Health(t.Context()) == nil })
	if d, err := db.Defaults.Default(t.Context(), "user"); err != nil || d.Version != 1 {
		t.Errorf("the default: %+v, %v", d, err)
	}
	// Connections that a restart has ended are replaced without an error.
	s.Kill()
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, "the lock is held again", func() bool {
		return db.Keys.UseKey(t.Context(), "k", noon) == nil
	})
	for range 20 {
		if _, err := db.Sessions.Session(t.Context(), "s"); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	}
}

// cutter passes connections on to a server, and cuts one at a COMMIT.
type cutter struct {
	dir    string // of its socket
	server string // path of the server's socket
	cut    atomic.Int32
	left   atomic.Int32 // how many connections it passes on; the server does not answer others
}

// What a cutter does at the next COMMIT, once.
const (
	cutBefore = iota + 1 // the server never sees it
	cutAfter             // the server's answer is lost
)

func startCutter(t *testing.T, s *postgrestest.Server) (*cutter, string) {
	t.Helper()
	at, err := url.Parse(s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "cut-")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{dir: dir, server: filepath.Join(at.Query().Get("host"), ".s.PGSQL.5432")}
	c.left.Store(math.MaxInt32)
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { c.pass(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
		_ = os.RemoveAll(dir)
	})
	at.RawQuery = url.Values{"host": {dir}}.Encode()
	return c, at.String()
}

func (c *cutter) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	if c.left.Add(-1) < 0 {
		_, _ = io.Copy(io.Discard, client) // until the client gives up
		return
	}
	server, err := net.Dial("unix", c.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var silent atomic.Bool
	var back sync.WaitGroup
	back.Go(func() {
		b := make([]byte, 32<<10)
		for {
			n, err := server.Read(b)
			if err == nil && silent.Load() {
				err = io.EOF // the server has answered the COMMIT
			}
			if err == nil {
				_, err = client.Write(b[:n])
			}
			if err != nil {
				_ = client.Close()
				return
			}
		}
	})
	defer back.Wait()
	defer func() { _ = server.Close() }()
	b := make([]byte, 32<<10)
	for {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		if bytes.Contains(b[:n], []byte("commit\x00")) {
			switch c.cut.Swap(0) {
			case cutBefore:
				return
			case cutAfter:
				silent.Store(true)
			}
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
	}
}

// A commit whose connection is lost is done exactly once, whether the server saw it or not.
func TestCommitLost(t *testing.T) {
	s := ownServer(t)
	cutter, address := startCutter(t, s)
	db := open(t, address)
	fill(t, db)
	for i, cut := range []int32{cutBefore, cutAfter, cutBefore, cutAfter} {
		cutter.cut.Store(cut)
		m, err := db.Messages.AddMessage(t.Context(), profiles.Message{SessionID: "s", Type: "LOG", Content: fmt.Sprint(i), At: noon}, "")
		if err != nil || m.ID != int64(i+1) {
			t.Errorf("cut %d: message %d, %v", cut, m.ID, err)
		}
		if cutter.cut.Load() != 0 {
			t.Error("nothing was cut")
		}
	}
	all, _, err := db.Messages.Messages(t.Context(), "s", 0, 0)
	if err != nil || len(all) != 4 {
		t.Errorf("%d messages, %v", len(all), err)
	}
}

// A second process that wants a database for itself is refused, until the first one ends.
func TestExclusive(t *testing.T) {
	o := sqldb.Options{Path: postgresURL(t), Now: time.Now, Exclusive: true}
	first, err := sqldb.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqldb.Open(t.Context(), o); !fault.Is(err, fault.DataDirInUse) {
		t.Errorf("a second one: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the lock is free", func() bool {
		next, err := sqldb.Open(t.Context(), o)
		return err == nil && next.Close() == nil
	})
}

// What an operator may get wrong is a config fault that says what to do, without the
// password.
func TestPostgresRefused(t *testing.T) {
	s := server.Server(t)
	if err := s.Exec(t.Context(), "postgres", "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
		"CREATE ROLE weak LOGIN PASSWORD 'weak'"); err != nil {
		t.Fatal(err)
	}
	good := server.Database(t)
	edit := func(change func(*url.URL)) string {
		u, err := url.Parse(good)
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		return u.String()
	}
	for name, test := range map[string]struct {
		url  string
		code fault.Code
		text string
	}{
		"no URL":          {"postgres://stasis:" + "secret" + "@h:x/", fault.Config, "valid URL"},
		"sslmode":         {edit(func(u *url.URL) { u.RawQuery = "host=127.0.0.1&sslmode=never" }), fault.Config, "sslmode"},
		"certificate":     {edit(func(u *url.URL) { u.RawQuery = "host=127.0.0.1&sslmode=verify-full&sslrootcert=/none" }), fault.Config, "/none"},
		"password":        {edit(func(u *url.URL) { u.User = url.UserPassword("stasis", "secret") }), fault.Config, "refuses the role"},
		"database":        {edit(func(u *url.URL) { u.Path = "/absent" }), fault.Config, "refuses the role"},
		"encoding":        {s.URL("latin"), fault.Config, "UTF8"},
		"schema":          {edit(func(u *url.URL) { u.RawQuery += "&search_path=absent" }), fault.Config, "schema"},
		"right to create": {edit(func(u *url.URL) { u.User = url.UserPassword("weak", "weak") }), fault.Config, "right to create"},
		"nothing listens": {edit(func(u *url.URL) { u.RawQuery = "host=" + t.TempDir() }), fault.CatalogueUnavailable, "cannot be reached"},
	} {
		db, err := sqldb.Open(t.Context(), sqldb.Options{Path: test.url, Now: time.Now, Exclusive: true})
		if err == nil {
			_ = db.Close()
		}
		if !fault.Is(err, test.code) || !strings.Contains(fault.MessageOf(err), test.text) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), postgrestest.Password)) {
			t.Errorf("%s: the error has the password: %v", name, err)
		}
	}
	// A read-only catalogue is neither created nor migrated.
	if _, err := sqldb.Open(t.Context(), sqldb.Options{Path: good, Now: time.Now, ReadOnly: true}); !fault.Is(err, fault.Config) {
		t.Errorf("read-only, without tables: %v", err)
	}
}

// A server that stops to answer while a catalogue is opened is named as the cause.
func TestServerDoesNotAnswer(t *testing.T) {
	c, address := startCutter(t, server.Server(t))
	c.left.Store(1)
	_, err := sqldb.Open(t.Context(), sqldb.Options{Path: address + "&connect_timeout=1", Now: time.Now, ReadOnly: true})
	if !fault.Is(err, fault.CatalogueUnavailable) || !strings.Contains(fault.MessageOf(err), "--database: the server cannot be reached") {
		t.Error(err)
	}
}

// The password can be in a file.
func TestPasswordFile(t *testing.T) {
	u, err := url.Parse(server.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(file, []byte("*:*:*:stasis:"+postgrestest.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.User = url.User("stasis")
	u.RawQuery += "&passfile=" + url.QueryEscape(file)
	open(t, u.String())
}

// A statement that waits for a lock beyond its caller's deadline is a timeout, and the
// catalogue works on.
func TestPostgresDeadline(t *testing.T) {
	address := postgresURL(t)
	db := open(t, address)
	fill(t, db)
	hold, err := rawOpen(t, "pgx", address).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hold.ExecContext(t.Context(), "LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := db.Sessions.Session(ctx, "s"); !fault.Is(err, fault.Timeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if err := hold.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Sessions.Session(t.Context(), "s"); err != nil {
		t.Error(err)
	}
}

// A read-only catalogue can be read beside its daemon, and refuses writes.
func TestPostgresReadOnly(t *testing.T) {
	address := postgresURL(t)
	fill(t, open(t, address))
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: address, Now: time.Now, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := db.Sessions.Session(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	if err := db.Keys.CreateKey(t.Context(), profiles.Key{ID: "k"}); !fault.Is(err, fault.StoreFailed) {
		t.Errorf("a write: %v", err)
	}
}

// With sslmode=verify-full, only a server with a certificate of the given authority is used.
func TestPostgresTLS(t *testing.T) {
	s := ownServer(t)
	cert, key := certificate(t)
	port, err := s.UseTLS(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := certificate(t)
	dir := t.TempDir()
	for name, content := range map[string][]byte{"ca.pem": cert, "other.pem": other} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := func(host, authority string) string {
		u := url.URL{Scheme: "postgres", User: url.UserPassword("stasis", postgrestest.Password), Host: fmt.Sprint(host, ":", port), Path: "/postgres",
			RawQuery: url.Values{"sslmode": {"verify-full"}, "sslrootcert": {filepath.Join(dir, authority)}}.Encode()}
		return u.String()
	}
	db := open(t, address("localhost", "ca.pem"))
	fill(t, db)
	var encrypted bool
	err = rawOpen(t, "pgx", address("localhost", "ca.pem")).QueryRowContext(t.Context(), "SELECT bool_and(ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.application_name = 'stasis'").Scan(&encrypted)
	if err != nil || !encrypted {
		t.Errorf("encrypted: %v, %v", encrypted, err)
	}
	for name, wrong := range map[string]string{"another authority": address("localhost", "other.pem"), "another name": address("127.0.0.1", "ca.pem")} {
		if db, err := sqldb.Open(t.Context(), sqldb.Options{Path: wrong, Now: time.Now}); err == nil {
			t.Errorf("%s: it was opened", name)
			_ = db.Close()
		} else if !strings.Contains(err.Error(), "x509") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// certificate makes a certificate for localhost, signed by itself.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, &about, &about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}
