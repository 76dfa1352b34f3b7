//go:build linux

package main

import (
	"testing"

	"filippo.io/age"

	"github.com/stasisd/stasis/snapshot"
)

// Nodes with the same keys have the same fingerprints, and a write-only node has none of an
// identity.
func TestFingerprints(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	of := func(identity *age.X25519Identity, archive byte) *storage {
		var recipients []*age.X25519Recipient
		if identity == nil {
			other, err := age.GenerateX25519Identity()
			if err != nil {
				t.Fatal(err)
			}
			recipients = append(recipients, other.Recipient())
		}
		return &storage{keys: snapshot.NewKeys(identity, [32]byte{archive}, recipients...)}
	}
	is := of(identity, 1).fingerprints([]byte("hook"))
	if is != of(identity, 1).fingerprints([]byte("hook")) {
		t.Error("the same keys have other fingerprints")
	}
	other := of(identity, 2).fingerprints([]byte("hook"))
	if other.Archive == is.Archive || other.Identity == is.Identity {
		t.Error("another archive key has the same fingerprints")
	}
	if got := of(nil, 1).fingerprints(nil); got.Identity != "" || got.Webhook != "" || got.Archive != is.Archive {
		t.Errorf("a write-only node has %+v", got)
	}
}
