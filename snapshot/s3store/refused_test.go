package s3store_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot/s3store"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

// Open reports an operator's mistake with what to correct, and never with the secret.
func TestOpenRefusesMistakes(t *testing.T) {
	// The credential chain must not find the credentials of the person who runs the tests.
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")

	server := s3test.Start(t)
	p := s3test.NewProxy(t, server)
	every := func(f s3test.Fault) func(*http.Request) s3test.Fault {
		return func(*http.Request) s3test.Fault { return f }
	}
	proxied := func(o *s3store.Options) { o.Endpoint = p.Endpoint }
	tests := map[string]struct {
		change func(*s3store.Options)
		plan   func(*http.Request) s3test.Fault
		code   fault.Code
		says   string
	}{
		"missing bucket":   {change: func(o *s3store.Options) { o.Bucket = "not-there" }, says: "bucket does not exist"},
		"wrong access key": {change: func(o *s3store.Options) { o.AccessKey = "nobody" }, says: "--s3-access-key"},
		"wrong secret":     {change: func(o *s3store.Options) { o.SecretKey += "x" }, says: "--s3-secret-key-file"},
		"wrong region":     {change: func(o *s3store.Options) { o.Region = "eu-test-2" }, says: "region="},
		"no credentials": {change: func(o *s3store.Options) { o.AccessKey, o.SecretKey = "", "" },
			code: fault.Config, says: "AWS_ACCESS_KEY_ID"},
		"no listener":  {change: func(o *s3store.Options) { o.Endpoint = "127.0.0.1:1" }, says: "cannot be reached"},
		"no such host": {change: func(o *s3store.Options) { o.Endpoint = "nowhere.invalid" }, says: "cannot be reached"},
		"no TLS there": {change: func(o *s3store.Options) { o.Insecure = false }, says: "http://"},
		"clock skew": {change: proxied, says: "clock", plan: func(r *http.Request) s3test.Fault {
			r.Header.Set("X-Amz-Date", time.Now().Add(-time.Hour).UTC().Format("20060102T150405Z"))
			return s3test.Pass
		}},
		"no right":             {change: proxied, plan: every(s3test.Answer(http.StatusForbidden, "AccessDenied")), says: "lack a right"},
		"full":                 {change: proxied, plan: every(s3test.Answer(http.StatusForbidden, "QuotaExceeded")), code: fault.StoreFull, says: "quota"},
		"full, by 507":         {change: proxied, plan: every(s3test.Answer(http.StatusInsufficientStorage, "Full")), code: fault.StoreFull, says: "quota"},
		"stays broken":         {change: proxied, plan: every(s3test.Answer(http.StatusServiceUnavailable, "SlowDown"))},
		"conditions cost":      {change: proxied, plan: conditional(s3test.Answer(http.StatusNotImplemented, "NotImplemented")), says: "conditional"},
		"conditions count not": {change: proxied, plan: conditional(s3test.Answer(http.StatusOK, "")), says: "conditional"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := server.Options(t)
			test.change(&o)
			if test.plan == nil {
				test.plan = every(s3test.Pass)
			}
			p.Plan(test.plan)
			s, err := s3store.Open(t.Context(), o)
			if err == nil {
				t.Fatal("it opens", s.Close())
			}
			if test.code == "" {
				test.code = fault.StoreFailed
			}
			if !fault.Is(err, test.code) || !strings.Contains(fault.MessageOf(err), test.says) {
				t.Errorf("%v, want %s that says %q", err, test.code, test.says)
			}
			if strings.Contains(fmt.Sprintf("%v %+v", err, err), s3test.SecretKey) {
				t.Error("the error holds the secret key")
			}
		})
	}
}

// Over TLS the certificate must be trusted; everything else works as without TLS.
func TestTLS(t *testing.T) {
	server := s3test.Start(t)
	p, certificate := s3test.NewTLSProxy(t, server)
	o := server.Options(t)
	o.Endpoint, o.Insecure = p.Endpoint, false
	if _, err := s3store.Open(t.Context(), o); !fault.Is(err, fault.StoreFailed) || !strings.Contains(fault.MessageOf(err), "certificate") {
		t.Errorf("with an untrusted certificate: %v", err)
	}
	t.Setenv("SSL_CERT_FILE", certificate)
	s := open(t, o)
	if created, err := commit(t, s, archive, pieces); !created || err != nil {
		t.Errorf("Commit: %v, %v", created, err)
	}
	if !bytes.Equal(content(t, s, archive), pieces) {
		t.Error("other bytes were read than written")
	}
}

// The style decides where the bucket's name goes. No test can use host names below that
// of its server, so the test checks only the requested host.
func TestHostStyle(t *testing.T) {
	o := s3store.Options{Endpoint: "nowhere.invalid", Bucket: "my-bucket", Region: "x", AccessKey: "a", SecretKey: "s",
		HostStyle: true, Now: time.Now, Tries: 1}
	if _, err := s3store.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "//my-bucket.nowhere.invalid/") {
		t.Errorf("%v", err)
	}
	o.HostStyle = false
	if _, err := s3store.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "//nowhere.invalid/my-bucket/") {
		t.Errorf("%v", err)
	}
}

// conditional makes writes with a condition fail.
func conditional(f s3test.Fault) func(*http.Request) s3test.Fault {
	return func(r *http.Request) s3test.Fault {
		if r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Match") != "" {
			return f
		}
		return s3test.Pass
	}
}

func TestOptions(t *testing.T) {
	for name, change := range map[string]func(*s3store.Options){
		"no endpoint":           func(o *s3store.Options) { o.Endpoint = "" },
		"endpoint with a path":  func(o *s3store.Options) { o.Endpoint += "/x" },
		"no bucket":             func(o *s3store.Options) { o.Bucket = "" },
		"prefix with ..":        func(o *s3store.Options) { o.Prefix = "a/../b" },
		"prefix with a slash":   func(o *s3store.Options) { o.Prefix = "/a" },
		"prefix that needs %":   func(o *s3store.Options) { o.Prefix = "a b" },
		"half of a credential":  func(o *s3store.Options) { o.SecretKey = "" },
		"other half of the two": func(o *s3store.Options) { o.AccessKey = "" },
	} {
		o := s3store.Options{Endpoint: "127.0.0.1:1", Bucket: "b", AccessKey: "a", SecretKey: "s", Now: time.Now}
		change(&o)
		if _, err := s3store.Open(t.Context(), o); !fault.Is(err, fault.Config) {
			t.Errorf("%s: %v, want config", name, err)
		}
	}
}
