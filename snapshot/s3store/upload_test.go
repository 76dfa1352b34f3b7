package s3store_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

// unfinished lists the multipart uploads that were not completed.
func unfinished(t *testing.T, server *s3test.Server) []string {
	t.Helper()
	page, err := server.Client(t).ListMultipartUploads(t.Context(), s3test.Bucket, "", "", "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, u := range page.Uploads {
		keys = append(keys, u.Key)
	}
	return keys
}

// put writes an object without the store's knowledge.
func put(t *testing.T, server *s3test.Server, key string) {
	t.Helper()
	if _, err := server.Client(t).PutObject(t.Context(), s3test.Bucket, key, strings.NewReader("x"), 1, "", "", minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The parts of a failed upload are dropped at once. Those of a dead daemon, and the
// remains of its health checks, are dropped by an Open a day later. Only objects below
// the store's prefix are dropped.
func TestNoPartsRemain(t *testing.T) {
	server := s3test.Start(t)
	s, p := behindProxy(t, server)
	for name, plan := range map[string]func(*http.Request) s3test.Fault{
		"a part fails": func(r *http.Request) s3test.Fault {
			if strings.Contains(r.URL.RawQuery, "partNumber=2") {
				return s3test.Answer(http.StatusServiceUnavailable, "SlowDown")
			}
			return s3test.Pass
		},
		"its end fails": func(r *http.Request) s3test.Fault {
			if s3test.IsComplete(r) {
				return s3test.Answer(http.StatusInternalServerError, "InternalError")
			}
			return s3test.Pass
		},
	} {
		p.Plan(plan)
		if created, err := commit(t, s, archive, pieces); created || !fault.Is(err, fault.StoreFailed) {
			t.Errorf("%s: %v, %v", name, created, err)
		}
		if left := unfinished(t, server); len(left) > 0 {
			t.Errorf("%s: %q is left", name, left)
		}
	}

	o := server.Options(t)
	client := server.Client(t)
	mine, others := o.Prefix+"/archives/x", o.Prefix+"-other/archives/x"
	for _, key := range []string{mine, others} {
		if _, err := client.NewMultipartUpload(t.Context(), s3test.Bucket, key, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
		put(t, server, strings.Replace(key, "archives", "tmp", 1))
	}
	there := func(key string) bool {
		_, err := client.StatObject(t.Context(), s3test.Bucket, strings.Replace(key, "archives", "tmp", 1), minio.StatObjectOptions{})
		return err == nil
	}
	open(t, o)
	if left := unfinished(t, server); len(left) != 2 || !there(mine) {
		t.Errorf("of today's uploads %q are left", left)
	}
	o.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	o.ReadOnly = true
	open(t, o)
	if left := unfinished(t, server); len(left) != 2 || !there(mine) {
		t.Errorf("a read-only store left %q", left)
	}
	o.ReadOnly = false
	open(t, o)
	if left := unfinished(t, server); len(left) != 1 || left[0] != others || there(mine) || !there(others) {
		t.Errorf("a day later %q is left", left)
	}
	o.Prefix = "" // other programs may use the bucket too
	open(t, o)
	if left := unfinished(t, server); len(left) != 1 {
		t.Errorf("a store without a prefix left %q of another's", left)
	}
}

// A spool file has no name, so that a killed daemon leaves nothing.
func TestSpoolHasNoName(t *testing.T) {
	o := s3test.Start(t).Options(t)
	s := open(t, o)
	up, err := s.Upload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := up.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(o.Spool); len(names) > 0 || err != nil {
		t.Errorf("the spool holds %v, %v", names, err)
	}
	if err := up.Abort(); err != nil {
		t.Error(err)
	}
	o.Spool += "/missing"
	if _, err := open(t, o).Upload(t.Context()); !fault.Is(err, fault.StoreFailed) {
		t.Errorf("Upload without a spool: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	o := s3test.Start(t).Options(t)
	if created, err := open(t, o).Create(t.Context(), archive, []byte("one")); !created || err != nil {
		t.Fatal(created, err)
	}
	o.ReadOnly = true
	s := open(t, o)
	_, created := s.Create(t.Context(), archive, nil)
	_, swapped := s.Swap(t.Context(), archive, []byte("one"), nil)
	_, uploaded := s.Upload(t.Context())
	for call, err := range map[string]error{"Create": created, "Swap": swapped, "Upload": uploaded, "Delete": s.Delete(t.Context(), archive)} {
		if !fault.Is(err, fault.StoreFailed) {
			t.Errorf("%s: %v, want store_failed", call, err)
		}
	}
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("Health: %v", err)
	}
	if got := content(t, s, archive); string(got) != "one" {
		t.Errorf("there is %q", got)
	}
}
