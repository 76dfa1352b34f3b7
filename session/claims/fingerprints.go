package claims

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Secrets are what all nodes must share.
type Secrets struct {
	Identities []string // the recipients ("age1…") of the identities; none: the node is write-only
	Archive    []byte   // derived from the archive key
	Webhook    []byte   // signs webhooks; nil: there is none
}

// Fingerprints are keyed hashes of a node's secrets. A node puts them into its facts. They
// show nothing to a reader of the catalogue.
type Fingerprints struct {
	Identity string `json:"identity"` // "": the node is write-only
	Archive  string `json:"archive_key"`
	Webhook  string `json:"webhook_secret"` // "": none
}

// facts is the part of a node's facts that this package reads.
type facts struct {
	Fingerprints *Fingerprints `json:"fingerprints"`
}

// Of returns the fingerprints of secrets.
func Of(s Secrets) Fingerprints {
	f := Fingerprints{Archive: fingerprint(s, "archive key", nil)}
	if len(s.Identities) > 0 {
		f.Identity = fingerprint(s, "identity", []byte(strings.Join(slices.Sorted(slices.Values(s.Identities)), " ")))
	}
	if s.Webhook != nil {
		f.Webhook = fingerprint(s, "webhook secret", s.Webhook)
	}
	return f
}

func fingerprint(s Secrets, name string, value []byte) string {
	mac := hmac.New(sha256.New, s.Archive)
	mac.Write([]byte("fingerprint of " + name + " "))
	mac.Write(value)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// looks is how often Compare looks at a node whose lease has ended.
const looks = 15

// Compare compares the fingerprints of a node with those of the others that list returns. If a
// secret differs from that of a node with a valid lease, the error is config and names it, and the
// other node. A node whose lease has ended, and which nobody has taken over, may still renew it,
// for example after a restart of the database. If its secrets differ, Compare waits for as long as
// lease, and returns nil if it is still late then. A write-only node differs from no identity.
func (f Fingerprints) Compare(ctx context.Context, id string, list func(context.Context) ([]profiles.Node, error), lease time.Duration) error {
	for n := 0; ; n++ {
		all, err := list(ctx)
		if err != nil {
			return err
		}
		valid, late := f.differing(id, all)
		if valid != nil || late == nil || n == looks {
			return valid
		}
		select {
		case <-time.After(lease / looks):
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.Timeout, "claims.fingerprints", fault.MessageOf(late))
		}
	}
}

// differing returns what differs from a node with a valid lease, and from one whose lease has
// ended; nil: nothing.
func (f Fingerprints) differing(id string, nodes []profiles.Node) (valid, late error) {
	for _, n := range nodes {
		var other facts
		if n.ID == id || n.Number == 0 || json.Unmarshal(n.Facts, &other) != nil || other.Fingerprints == nil {
			continue
		}
		what := f.from(*other.Fingerprints)
		if what == "" {
			continue
		}
		err := fault.New(fault.Config, "claims.fingerprints",
			"%s of this node differs from that of node %s; give all nodes the same, by file or in the environment", what, n.ID)
		if n.Left > 0 {
			return err, late
		}
		late = err
	}
	return nil, late
}

// from names the secret that differs from another node's; "": none.
func (f Fingerprints) from(other Fingerprints) string {
	switch {
	case f.Archive != other.Archive: // it also keys the other fingerprints
		return "the archive key"
	case f.Identity != other.Identity && f.Identity != "" && other.Identity != "":
		return "the identity"
	case f.Webhook != other.Webhook:
		return "the webhook secret"
	}
	return ""
}
