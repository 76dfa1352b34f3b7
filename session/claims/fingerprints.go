package claims

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

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

// Check compares the fingerprints of a node with those of the others that have a valid lease.
// If a secret differs, the error is config and names it, and the other node. A write-only node
// differs from no identity.
func (f Fingerprints) Check(id string, nodes []profiles.Node) error {
	for _, n := range nodes {
		var other facts
		if n.ID == id || n.Left <= 0 || json.Unmarshal(n.Facts, &other) != nil || other.Fingerprints == nil {
			continue
		}
		is := *other.Fingerprints
		var what string
		switch {
		case f.Archive != is.Archive: // it also keys the other fingerprints
			what = "the archive key"
		case f.Identity != is.Identity && f.Identity != "" && is.Identity != "":
			what = "the identity"
		case f.Webhook != is.Webhook:
			what = "the webhook secret"
		default:
			continue
		}
		return fault.New(fault.Config, "claims.fingerprints",
			"%s of this node differs from that of node %s; give all nodes the same, by file or in the environment", what, n.ID)
	}
	return nil
}
