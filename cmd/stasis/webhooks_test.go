//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/events/webhook"
)

// The secret is made once, and only its owner can read it. A given secret is used instead.
func TestWebhookSecret(t *testing.T) {
	t.Setenv(webhookSecretVariable, "")
	dir := t.TempDir()
	var f webhookFlags
	made, err := f.secret(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, webhookSecretFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if again, err := f.secret(dir); err != nil || !bytes.Equal(made, again) {
		t.Errorf("it changed: %v", err)
	}
	other := webhook.NewSecret()
	t.Setenv(webhookSecretVariable, other.Text())
	if got, err := f.secret(dir); err != nil || !bytes.Equal(got, other) {
		t.Errorf("from the environment: %v", err)
	}
	f.WebhookSecretFile = filepath.Join(dir, "none")
	if _, err := f.secret(dir); !fault.Is(err, fault.Config) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(f.WebhookSecretFile, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.secret(dir); !fault.Is(err, fault.Config) {
		t.Errorf("no secret: %v", err)
	}
}

// Two receivers on one host are shown differently. A query or a password is not shown.
func TestShownURL(t *testing.T) {
	for address, want := range map[string]string{
		"https://hooks.example:8443/a?token=secret#x": "hooks.example:8443/a",
		"https://user:secret@hooks.example/b%20c":     "hooks.example/b%20c",
		"http://hooks.example":                        "hooks.example",
		":no address":                                 "",
	} {
		if got := shownURL(address); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}
