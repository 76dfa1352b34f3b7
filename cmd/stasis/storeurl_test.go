//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot/s3store"
)

func TestParseStore(t *testing.T) {
	type place struct {
		dir                              string
		memory                           bool
		endpoint, bucket, prefix, region string
		insecure, host                   bool
	}
	for raw, want := range map[string]place{
		"file:///srv/snapshots":  {dir: "/srv/snapshots"},
		"file:///srv/a%20b/../c": {dir: "/srv/c"},
		"mem://":                 {memory: true},
		"s3://my.bucket":         {endpoint: awsEndpoint, bucket: "my.bucket", host: true},
		"s3://bucket/a/b/?region=eu-central-1&style=path":                 {endpoint: awsEndpoint, bucket: "bucket", prefix: "a/b", region: "eu-central-1"},
		"s3://bucket/p?endpoint=http://127.0.0.1:7070":                    {endpoint: "127.0.0.1:7070", bucket: "bucket", prefix: "p", insecure: true},
		"s3://bucket/p?endpoint=https%3A%2F%2Fs3.example.org/&style=host": {endpoint: "s3.example.org", bucket: "bucket", prefix: "p", host: true},
	} {
		got, err := parseStore(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		read := place{dir: got.dir, memory: got.memory}
		if o := got.s3; o != nil {
			read = place{endpoint: o.Endpoint, bucket: o.Bucket, prefix: o.Prefix, region: o.Region, insecure: o.Insecure, host: o.HostStyle}
		}
		if read != want {
			t.Errorf("%s is %+v, want %+v", raw, read, want)
		}
	}
	// What is wrong with each URL, and a word that the error must contain.
	for raw, says := range map[string]string{
		"snapshots":                           "begin with",
		"https://bucket":                      "begin with",
		"s3:bucket":                           "s3://",
		"%zz":                                 "URL",
		"file://srv/snapshots":                "absolute",
		"file://":                             "absolute",
		"file:///srv?x=1":                     "nothing else",
		"file:///srv#x":                       "file:///PATH",
		"mem://x":                             "mem://",
		"mem:///x":                            "mem://",
		"s3://":                               "bucket",
		"s3:///prefix":                        "bucket",
		"s3://Bucket":                         "bucket",
		"s3://bucket:9000/x":                  "bucket",
		"s3://bucket/a/../b":                  "prefix",
		"s3://bucket//a//b":                   "prefix",
		"s3://bucket/a%20b":                   "prefix",
		"s3://secretsecret@bucket":            "credentials",
		"s3://a:secretsecret@b-b":             "credentials",
		"s3://bucket?key=secretsecret":        "endpoint, region and style",
		"s3://bucket?region=a&region=b":       "region",
		"s3://bucket?region=":                 "region",
		"s3://bucket?region=EU":               "region",
		"s3://bucket?%zz":                     "query",
		"s3://bucket?style=virtual":           "path or host",
		"s3://bucket?endpoint=s3.example.org": "http or https",
		"s3://bucket?endpoint=ftp://s3.example.org":         "http or https",
		"s3://bucket?endpoint=https://x:secretsecret@e.org": "credentials",
		"s3://bucket?endpoint=https://e.org/bucket":         "without a path",
	} {
		_, err := parseStore(raw)
		if !fault.Is(err, fault.Config) || !strings.Contains(fault.MessageOf(err), says) {
			t.Errorf("%s: %v, want config that says %q", raw, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "secretsecret") {
			t.Errorf("%s: the error repeats a secret: %v", raw, err)
		}
	}
}

func TestStoreWithoutFlag(t *testing.T) {
	if at, err := (storeFlags{}).place("/data"); err != nil || at.dir != "/data/snapshots" {
		t.Errorf("%v, %v", at, err)
	}
}

func TestStoreCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if access, secret, err := (s3Flags{S3AccessKey: "me", S3SecretKeyFile: file}).read(); access != "me" || secret != "s3cret" || err != nil {
		t.Errorf("%q, %q, %v", access, secret, err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]s3Flags{
		"no file":      {S3AccessKey: "me"},
		"no key":       {S3SecretKeyFile: file},
		"missing file": {S3AccessKey: "me", S3SecretKeyFile: file + "x"},
		"empty file":   {S3AccessKey: "me", S3SecretKeyFile: empty},
		"open file":    {S3AccessKey: "me", S3SecretKeyFile: open}, // Chromes run on this machine too
	} {
		at := storeURL{s3: &s3store.Options{Endpoint: "127.0.0.1:1", Bucket: "bucket"}}
		if _, err := at.open(t.Context(), f, t.TempDir(), false); !fault.Is(err, fault.Config) || !strings.Contains(fault.MessageOf(err), "--s3-") {
			t.Errorf("%s: %v, want config", name, err)
		}
	}
}
