package main

import (
	"context"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/fsstore"
	"github.com/stasisd/stasis/snapshot/memstore"
	"github.com/stasisd/stasis/snapshot/s3store"
)

// storeFlags say where snapshots are kept.
type storeFlags struct {
	Store string `help:"Where snapshots are kept: file:///PATH, s3://BUCKET/PREFIX?endpoint=URL&region=REGION&style=path|host, or mem://; otherwise in the data directory." placeholder:"URL"`
	s3Flags
}

// s3Flags say who asks an S3 service. A secret is not among the flags: those of
// a process are seen by every user of its machine. The variables are named here,
// for a digit would be a word of its own: STASIS_S_3_….
type s3Flags struct {
	S3AccessKey     string `help:"Access key for s3://; otherwise AWS's environment variables are looked at, then AWS's shared credentials file." name:"s3-access-key" env:"STASIS_S3_ACCESS_KEY" placeholder:"KEY"`
	S3SecretKeyFile string `help:"File with the secret key that belongs to it." name:"s3-secret-key-file" env:"STASIS_S3_SECRET_KEY_FILE" placeholder:"FILE"`
}

// awsEndpoint is where a bucket is for which no endpoint is named.
const awsEndpoint = "s3.amazonaws.com"

var (
	bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionForm = regexp.MustCompile(`^[a-z0-9-]+$`)
)

// storeURL is a --store that was read: one of its fields is set.
type storeURL struct {
	dir    string // of files; absolute
	s3     *s3store.Options
	memory bool
}

// String names the place, for the log.
func (u storeURL) String() string {
	switch {
	case u.memory:
		return "mem://"
	case u.s3 != nil:
		return "s3://" + u.s3.Bucket + "/" + u.s3.Prefix + " at " + u.s3.Endpoint
	}
	return u.dir
}

// archive is where a file of an archive is, for who is to give it to a verb; of a
// bucket its object.
func (u storeURL) archive(id string) string {
	if u.s3 != nil {
		return "s3://" + path.Join(u.s3.Bucket, u.s3.Prefix, "archives", id) + " (downloaded)"
	}
	return filepath.Join(u.dir, "archives", id)
}

// place reads the flags; dir is the data directory, in which files are kept
// that no flag sends elsewhere.
func (f storeFlags) place(dir string) (storeURL, error) {
	if f.Store == "" {
		return storeURL{dir: filepath.Join(dir, "snapshots")}, nil
	}
	return parseStore(f.Store)
}

// parseStore reads what names a store. Its errors are config, name the part
// that is wrong and what is allowed, and repeat nothing of what was given: it
// may hold a secret.
func parseStore(raw string) (storeURL, error) {
	at, err := url.Parse(raw)
	if err != nil {
		return storeURL{}, badStore("is not a URL")
	}
	if at.User != nil {
		return storeURL{}, badStore("must not hold credentials: give --s3-access-key and --s3-secret-key-file")
	}
	if at.Fragment != "" || at.Opaque != "" {
		return storeURL{}, badStore("must be file:///PATH, s3://BUCKET/PREFIX or mem://")
	}
	switch at.Scheme {
	case "file":
		if at.Host != "" || !filepath.IsAbs(at.Path) || at.RawQuery != "" {
			return storeURL{}, badStore("takes an absolute path and nothing else after file://, as in file:///srv/snapshots")
		}
		return storeURL{dir: filepath.Clean(at.Path)}, nil
	case "mem":
		if at.Host != "" || at.Path != "" || at.RawQuery != "" {
			return storeURL{}, badStore("takes nothing after mem://")
		}
		return storeURL{memory: true}, nil
	case "s3":
		o, err := parseS3(at)
		return storeURL{s3: &o}, err
	}
	return storeURL{}, badStore("must begin with file://, s3:// or mem://")
}

// parseS3 reads s3://BUCKET/PREFIX?…
func parseS3(at *url.URL) (o s3store.Options, err error) {
	if !bucketForm.MatchString(at.Host) {
		return o, badStore("must name a bucket after s3://: 3 to 63 of a-z, 0-9, . and -")
	}
	query, err := url.ParseQuery(at.RawQuery)
	if err != nil {
		return o, badStore("has a query that cannot be read")
	}
	for name, values := range query {
		if !slices.Contains([]string{"endpoint", "region", "style"}, name) {
			return o, badStore("may have endpoint, region and style in its query, and nothing else")
		}
		if len(values) != 1 || values[0] == "" {
			return o, badStore("must have one value for " + name)
		}
	}
	o = s3store.Options{Bucket: at.Host, Prefix: strings.Trim(at.Path, "/"), Region: query.Get("region"),
		Endpoint: awsEndpoint, HostStyle: true, Now: time.Now}
	if o.Region != "" && !regionForm.MatchString(o.Region) {
		return o, badStore("has a region that is none: it is made of a-z, 0-9 and -")
	}
	if query.Has("endpoint") {
		endpoint, err := url.Parse(query.Get("endpoint"))
		if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
			return o, badStore("must have an endpoint that is an http or https address, as in endpoint=https://s3.example.org")
		}
		if endpoint.User != nil {
			return o, badStore("must not hold credentials: give --s3-access-key and --s3-secret-key-file")
		}
		if strings.Trim(endpoint.Path, "/") != "" || endpoint.RawQuery != "" || endpoint.Fragment != "" {
			return o, badStore("must have an endpoint without a path: the bucket goes after s3://")
		}
		o.Endpoint, o.Insecure, o.HostStyle = endpoint.Host, endpoint.Scheme == "http", false
	}
	switch style := query.Get("style"); style {
	case "":
	case "path", "host":
		o.HostStyle = style == "host"
	default:
		return o, badStore("must have path or host for style")
	}
	return o, o.Check()
}

func badStore(what string) error { return fault.New(fault.Config, "store.url", "--store %s", what) }

// open opens the store. What is on its way to an S3 service waits in the
// folder spool, which is made.
func (u storeURL) open(ctx context.Context, who s3Flags, spool string, readOnly bool) (snapshot.Store, error) {
	switch {
	case u.memory:
		return memstore.New(0, time.Now), nil
	case u.s3 == nil:
		return fsstore.Open(u.dir, fsstore.Options{ReadOnly: readOnly})
	}
	o := *u.s3
	var err error
	if o.AccessKey, o.SecretKey, err = who.read(); err != nil {
		return nil, err
	}
	if !readOnly {
		if err := os.MkdirAll(spool, 0o700); err != nil {
			return nil, fault.Wrap(err, fault.Config, "store.open", "--data-dir cannot be written")
		}
	}
	o.Spool, o.ReadOnly = spool, readOnly
	return s3store.Open(ctx, o)
}

// read gives the keys, both or none.
func (f s3Flags) read() (access, secret string, err error) {
	const op = "store.credentials"
	if (f.S3AccessKey == "") != (f.S3SecretKeyFile == "") {
		return "", "", fault.New(fault.Config, op, "--s3-access-key and --s3-secret-key-file go together")
	}
	if f.S3AccessKey == "" {
		return "", "", nil
	}
	text, err := readKeyFile("--s3-secret-key-file", f.S3SecretKeyFile)
	if err != nil {
		return "", "", err
	}
	if secret = strings.TrimSpace(text); secret == "" {
		return "", "", fault.New(fault.Config, op, "--s3-secret-key-file holds nothing")
	}
	return f.S3AccessKey, secret, nil
}
