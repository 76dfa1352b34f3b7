// Package s3test runs a real S3 server for tests: versitygw, as a process that
// ends with the test, on a folder that goes with it. Its [Proxy] stands in
// front of one and fails on purpose.
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
	// version is that of the Makefile, which installs it.
	version = "1.8.0"
	// Bucket is the bucket that every server has.
	Bucket = "snapshots"
	// AccessKey and SecretKey are who may use it.
	AccessKey = "stasis-test"
	SecretKey = "a-secret-that-nobody-may-see"
	// Region is where it says that it is.
	Region = "eu-test-1"
	// startDeadline bounds the start, far above what a loaded machine takes.
	startDeadline = 30 * time.Second
)

// Server is one running S3 server with an empty bucket.
type Server struct {
	Endpoint string // host:port, plain HTTP
	Dir      string // what it keeps; the bucket's objects are files below Dir/Bucket
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
		_ = cmd.Process.Kill() // or it has exited
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

// find is the binary that the Makefile installs.
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
		t.Fatalf("the S3 server that tests need is not there: make test installs it (%v)", err)
	}
	return binary
}

// freePort is an address on which nobody listens now.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // nothing was done with it
	return l.Addr().String()
}

// await waits until the server answers.
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
			t.Fatal("versitygw ended at its start")
		case <-ctx.Done():
			t.Fatal("versitygw does not answer")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Client is minio's client of the server, to look behind the store.
func (s *Server) Client(t testing.TB) *minio.Core {
	t.Helper()
	core, err := minio.NewCore(s.Endpoint, &minio.Options{Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Region: Region})
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// Options are those of a store that is empty: each call names another prefix.
// What waits to be tried again is tried soon.
func (s *Server) Options(t testing.TB) s3store.Options {
	return s3store.Options{
		Endpoint: s.Endpoint, Insecure: true, Bucket: Bucket, Prefix: fmt.Sprintf("store/%d", s.stores.Add(1)),
		AccessKey: AccessKey, SecretKey: SecretKey, Spool: t.TempDir(), Now: time.Now,
		PartSize: 5 << 20, Tries: 4, Wait: time.Millisecond,
	}
}

// URL is what --store takes to use the server's bucket, with a prefix.
func (s *Server) URL(prefix string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=http://%s&region=%s", Bucket, prefix, s.Endpoint, Region)
}
