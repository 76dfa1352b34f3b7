// Package s3test runs a real S3 server for tests: versitygw, as a process and on a folder
// that end with the test. Its [Proxy] stands in front of a server and makes requests
// fail.
package s3test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/stasisd/stasis/snapshot/s3store"
)

const (
	// version is the one that the Makefile installs.
	version = "1.8.0"
	// Bucket is the bucket that every server has.
	Bucket = "snapshots"
	// AccessKey and SecretKey are the server's credentials.
	AccessKey = "stasis-test"
	SecretKey = "a-secret-that-nobody-may-see"
	// Region is the region that the server reports.
	Region = "eu-test-1"
	// startDeadline limits the start; a loaded machine needs far less.
	startDeadline = 30 * time.Second
)

// Server is one running S3 server with an empty bucket.
type Server struct {
	Endpoint string // host:port, plain HTTP
	Dir      string // the server's files; the bucket's objects are files below Dir/Bucket
	stores   atomic.Int64
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{Endpoint: freePort(t), Dir: t.TempDir()}
	binary := find(t)
	cmd := exec.Command(binary, "--port", s.Endpoint, "--region", Region, "--health", "/health", "--keep-alive", "--quiet",
		"posix", s.Dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it fails if the server has exited
		<-exited
		if t.Failed() {
			t.Logf("versitygw:\n%s", out.String())
		}
	})
	s.await(t, exited)
	if err := s.Client(t).MakeBucket(t.Context(), Bucket, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// find returns the path of the binary that the Makefile installs.
func find(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	binary := filepath.Join(dir, "bin", "tools", "versitygw-"+version)
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("the S3 server for tests is not installed: run make test, which installs it (%v)", err)
	}
	return binary
}

// freePort returns an address with a port that is free now.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // nothing used it
	return l.Addr().String()
}

// await waits until the server responds.
func (s *Server) await(t testing.TB, exited <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startDeadline)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Endpoint+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close() // it is empty
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-exited:
			t.Fatal("versitygw exited while starting")
		case <-ctx.Done():
			t.Fatal("versitygw does not respond")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Client returns a minio client of the server, for tests that bypass the store.
func (s *Server) Client(t testing.TB) *minio.Core {
	t.Helper()
	core, err := minio.NewCore(s.Endpoint, &minio.Options{Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Region: Region})
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// Options returns options for an empty store: each call uses a new prefix. Retries wait
// only briefly.
func (s *Server) Options(t testing.TB) s3store.Options {
	return s3store.Options{
		Endpoint: s.Endpoint, Insecure: true, Bucket: Bucket, Prefix: fmt.Sprintf("store/%d", s.stores.Add(1)),
		AccessKey: AccessKey, SecretKey: SecretKey, Spool: t.TempDir(), Now: time.Now,
		PartSize: 5 << 20, Tries: 4, Wait: time.Millisecond,
	}
}

// URL returns the value of --store for the server's bucket and a prefix.
func (s *Server) URL(prefix string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=http://%s&region=%s", Bucket, prefix, s.Endpoint, Region)
}
