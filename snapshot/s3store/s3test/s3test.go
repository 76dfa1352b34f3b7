// Package s3test runs a real S3 server for tests: versitygw, as a process and on a folder
// that end with the test. Its [Proxy] stands in front of a server and makes requests
// fail.
package s3test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

	"github.com/stasisd/stasis/freeport"
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

	cmd    *exec.Cmd
	out    bytes.Buffer
	exited chan struct{}
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	endpoint, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Run(t.Context(), endpoint, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("versitygw:\n%s", s.out.String())
		}
	})
	return s
}

// Run starts a server at a free address, with its files in an empty folder. The caller stops it.
func Run(ctx context.Context, endpoint, dir string) (*Server, error) {
	s := &Server{Endpoint: endpoint, Dir: dir, exited: make(chan struct{})}
	binary, err := find()
	if err != nil {
		return nil, err
	}
	s.cmd = exec.Command(binary, "--port", s.Endpoint, "--region", Region, "--health", "/health", "--keep-alive", "--quiet",
		"posix", s.Dir)
	s.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = s.cmd.Wait(); close(s.exited) }()
	if err := s.prepare(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%w: %s", err, s.out.String())
	}
	return s, nil
}

// Stop ends the server. Its files stay.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill() // it fails if the server has exited
	<-s.exited
}

// prepare makes the bucket, as soon as the server responds.
func (s *Server) prepare(ctx context.Context) error {
	if err := s.await(ctx); err != nil {
		return err
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	return client.MakeBucket(ctx, Bucket, minio.MakeBucketOptions{})
}

// Uploads returns the names of the objects whose upload in parts was begun and not ended.
func (s *Server) Uploads(ctx context.Context) (names []string, err error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	for upload := range client.ListIncompleteUploads(ctx, Bucket, "", true) {
		if upload.Err != nil {
			return nil, upload.Err
		}
		names = append(names, upload.Key)
	}
	return names, nil
}

// find returns the path of the binary that the Makefile installs.
func find() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	binary := filepath.Join(dir, "bin", "tools", "versitygw-"+version)
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("the S3 server for tests is not installed: run make test, which installs it (%w)", err)
	}
	return binary, nil
}

// await waits until the server responds.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Endpoint+"/health", nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close() // it is empty
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.exited:
			return errors.New("versitygw exited while starting")
		case <-ctx.Done():
			return errors.New("versitygw does not respond")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *Server) client() (*minio.Core, error) {
	return minio.NewCore(s.Endpoint, &minio.Options{Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Region: Region})
}

// Client returns a minio client of the server, for tests that bypass the store.
func (s *Server) Client(t testing.TB) *minio.Core {
	t.Helper()
	core, err := s.client()
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
