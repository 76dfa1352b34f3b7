//go:build linux

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

// storeFlags say where snapshots are stored.
type storeFlags struct {
	Store storeAddress `help:"Where snapshots are stored: file:///PATH, s3://BUCKET/PREFIX?endpoint=URL&region=REGION&style=path|host, or mem://; by default in the data directory." placeholder:"URL"`
	s3Flags
}

// s3Flags are the credentials of an S3 service. The secret is not a flag: every user of a
// machine can see the flags of a process. The variables are named here because kong would
// make the digit a separate word: STASIS_S_3_….
type s3Flags struct {
	S3AccessKey     secretText `help:"Access key for s3://; by default AWS's environment variables, then AWS's shared credentials file." name:"s3-access-key" env:"STASIS_S3_ACCESS_KEY" placeholder:"KEY"`
	S3SecretKeyFile string     `help:"File with the secret key of --s3-access-key." name:"s3-secret-key-file" env:"STASIS_S3_SECRET_KEY_FILE" placeholder:"FILE"`
}

// awsEndpoint is the endpoint of a bucket if none is given.
const awsEndpoint = "s3.amazonaws.com"

var (
	bucketPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionPattern = regexp.MustCompile(`^[a-z0-9-]+$`)
)

// storeURL is a parsed --store. One of its fields is set.
type storeURL struct {
	dir    string // of files; absolute
	s3     *s3store.Options
	memory bool
}

// String returns the store's name, for the log.
func (u storeURL) String() string {
	switch {
	case u.memory:
		return "mem://"
	case u.s3 != nil:
		return "s3://" + u.s3.Bucket + "/" + u.s3.Prefix + " at " + u.s3.Endpoint
	}
	return u.dir
}

// archive returns the path of an archive's file, for a verb that takes it as an argument;
// for a bucket, the URL of its object.
func (u storeURL) archive(id string) string {
	if u.s3 != nil {
		return "s3://" + path.Join(u.s3.Bucket, u.s3.Prefix, "archives", id) + " (downloaded)"
	}
	return filepath.Join(u.dir, "archives", id)
}

// place parses the flags. dir is the data directory, which contains the store if no flag
// names another.
func (f storeFlags) place(dir string) (storeURL, error) {
	if f.Store == "" {
		return storeURL{dir: filepath.Join(dir, "snapshots")}, nil
	}
	return parseStore(string(f.Store))
}

// parseStore parses the URL of a store. Its errors are config. They name the part that is
// wrong and what is allowed, and repeat nothing of the URL, which may contain a secret.
func parseStore(raw string) (storeURL, error) {
	at, err := url.Parse(raw)
	if err != nil {
		return storeURL{}, invalidStore("is not a URL")
	}
	if at.User != nil {
		return storeURL{}, invalidStore("must not contain credentials; give --s3-access-key and --s3-secret-key-file")
	}
	if at.Fragment != "" || at.Opaque != "" {
		return storeURL{}, invalidStore("must be file:///PATH, s3://BUCKET/PREFIX or mem://")
	}
	switch at.Scheme {
	case "file":
		if at.Host != "" || !filepath.IsAbs(at.Path) || at.RawQuery != "" {
			return storeURL{}, invalidStore("must have an absolute path and nothing else after file://, such as file:///srv/snapshots")
		}
		return storeURL{dir: filepath.Clean(at.Path)}, nil
	case "mem":
		if at.Host != "" || at.Path != "" || at.RawQuery != "" {
			return storeURL{}, invalidStore("must have nothing after mem://")
		}
		return storeURL{memory: true}, nil
	case "s3":
		o, err := parseS3(at)
		return storeURL{s3: &o}, err
	}
	return storeURL{}, invalidStore("must begin with file://, s3:// or mem://")
}

// parseS3 parses s3://BUCKET/PREFIX?…
func parseS3(at *url.URL) (o s3store.Options, err error) {
	if !bucketPattern.MatchString(at.Host) {
		return o, invalidStore("must name a bucket after s3://: 3 to 63 of a-z, 0-9, . and -")
	}
	query, err := url.ParseQuery(at.RawQuery)
	if err != nil {
		return o, invalidStore("must have a valid query")
	}
	for name, values := range query {
		if !slices.Contains([]string{"endpoint", "region", "style"}, name) {
			return o, invalidStore("must have only endpoint, region and style in its query")
		}
		if len(values) != 1 || values[0] == "" {
			return o, invalidStore("must have one value for " + name)
		}
	}
	o = s3store.Options{Bucket: at.Host, Prefix: strings.Trim(at.Path, "/"), Region: query.Get("region"),
		Endpoint: awsEndpoint, HostStyle: true, Now: time.Now}
	if o.Region != "" && !regionPattern.MatchString(o.Region) {
		return o, invalidStore("must have a region of a-z, 0-9 and -")
	}
	if query.Has("endpoint") {
		endpoint, err := url.Parse(query.Get("endpoint"))
		if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
			return o, invalidStore("must have an http or https address as endpoint, such as endpoint=https://s3.example.org")
		}
		if endpoint.User != nil {
			return o, invalidStore("must not contain credentials; give --s3-access-key and --s3-secret-key-file")
		}
		if strings.Trim(endpoint.Path, "/") != "" || endpoint.RawQuery != "" || endpoint.Fragment != "" {
			return o, invalidStore("must have an endpoint without a path; the bucket goes after s3://")
		}
		o.Endpoint, o.Insecure, o.HostStyle = endpoint.Host, endpoint.Scheme == "http", false
	}
	switch style := query.Get("style"); style {
	case "":
	case "path", "host":
		o.HostStyle = style == "host"
	default:
		return o, invalidStore("must have path or host as style")
	}
	return o, o.Check()
}

func invalidStore(what string) error {
	return fault.New(fault.Config, "store.url", "--store: %s", what)
}

// open opens the store. Objects that wait to be uploaded to an S3 service are kept in the
// folder spool, which open creates.
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
			return nil, fault.Wrap(err, fault.Config, "store.open", "--data-dir: cannot be written")
		}
	}
	o.Spool, o.ReadOnly = spool, readOnly
	return s3store.Open(ctx, o)
}

// read returns both keys, or neither.
func (f s3Flags) read() (access, secret string, err error) {
	const op = "store.credentials"
	if (f.S3AccessKey == "") != (f.S3SecretKeyFile == "") {
		return "", "", fault.New(fault.Config, op, "--s3-access-key, --s3-secret-key-file: give both or neither")
	}
	if f.S3AccessKey == "" {
		return "", "", nil
	}
	text, err := readKeyFile("--s3-secret-key-file", f.S3SecretKeyFile)
	if err != nil {
		return "", "", err
	}
	if secret = strings.TrimSpace(text); secret == "" {
		return "", "", fault.New(fault.Config, op, "--s3-secret-key-file: is empty")
	}
	return string(f.S3AccessKey), secret, nil
}
