// Package forward passes calls on to the node of a cluster that can answer them, and checks
// calls that other nodes pass on.
//
// A call that is passed on carries the client's own credentials, so the other node decides what
// the client may do. What that node cannot see itself, such as the client's address, is in a
// header that is authenticated with a secret that all nodes share.
package forward

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/placement"
)

// Header is the header of calls that a node passes on. In the answer of a node that does not
// accept it, the value is Refused.
const (
	Header  = "Stasis-Node"
	Refused = "refused"
)

// hopAge is how much the clocks of two nodes may differ, with the time that a call takes to
// arrive. A header that is older is refused.
const hopAge = time.Minute

// Purpose says why a call was passed on.
type Purpose string

// The purposes.
const (
	// ToSession is a call about a session that lives on the receiving node.
	ToSession Purpose = "session"
	// ToPlace is a create that the receiving node is to make now or refuse.
	ToPlace Purpose = "place"
	// ToWait is ToPlace, but the create waits for its environment; see [Hop.Wait].
	ToWait Purpose = "wait"
	// ToMove is a call by a node itself: the receiving node is to continue a session.
	ToMove Purpose = "move"
	// ToFiles is a call by a node that continues a session: the receiving node is to give the
	// files of the session, which it has ended as moved.
	ToFiles Purpose = "files"
	// ToAnswer is a call by a node itself: the receiving node is to answer that it is there.
	ToAnswer Purpose = "answer"
	// ToTry is a call by a node itself: the receiving node is to call that node in turn, at the
	// URL that it has signed in the catalogue.
	ToTry Purpose = "try"
	// ToAll is a call that each node answers for its own sessions.
	ToAll Purpose = "all"
)

// Hop is what a node says of a call that it passes on.
type Hop struct {
	At      int64   `json:"at"` // Unix time in milliseconds
	From    string  `json:"from"`
	To      string  `json:"to"` // the IDs of both nodes
	Purpose Purpose `json:"purpose"`
	// Client is the address of the client; the zero Addr: unknown.
	Client netip.Addr `json:"client"`
	// Base is the address that the client sees, with which URLs in answers begin.
	Base string `json:"base"`
	// KeyID is the key of a client whose ticket was used up by the node that passes the call
	// on; "": the client's credentials are in the call.
	KeyID string `json:"key_id,omitempty"`
	// Wait is how long a create of ToWait may still wait, in milliseconds.
	Wait int64 `json:"wait_ms,omitempty"`
	// SessionID is the ID for the session that a create makes if it names none; "": any.
	SessionID string `json:"session_id,omitempty"`
}

// Waits returns Wait, which is 0 for other purposes than ToWait.
func (h Hop) Waits() time.Duration {
	if h.Purpose != ToWait {
		return 0
	}
	return time.Duration(h.Wait) * time.Millisecond
}

// hopKey is the context key of a call's Hop.
type hopKey struct{}

// HopOf returns what the node says that passed a call on; ok is false if the call came from a
// client.
func HopOf(ctx context.Context) (h Hop, ok bool) {
	h, ok = ctx.Value(hopKey{}).(Hop)
	return h, ok
}

// BaseURL returns Base; nil if there is none.
func (h Hop) BaseURL() *url.URL {
	u, err := url.Parse(h.Base)
	if err != nil || u.Host == "" {
		return nil
	}
	return u
}

// Signer makes and checks the header.
type Signer struct {
	self   string
	secret []byte
	now    func() time.Time
}

// NewSigner makes a Signer for the node with the ID self. All nodes have the same secret.
func NewSigner(self string, secret []byte, now func() time.Time) *Signer {
	return &Signer{self, secret, now}
}

// Sign sets the header of a request that is about to be sent to a node. Its method, URL and
// credentials must not change afterwards.
func (s *Signer) Sign(r *http.Request, h Hop) error {
	h.At, h.From = s.now().UnixMilli(), s.self
	doc, err := json.Marshal(h)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "forward.sign", "")
	}
	text := base64.RawURLEncoding
	r.Header.Set(Header, text.EncodeToString(doc)+"."+text.EncodeToString(s.mac(doc, r.Method, r.URL.RequestURI(), r.Header)))
	return nil
}

// Receive checks the header of a request and returns the request as the client has sent it: with
// its address and the host that it named. A request without the header is returned unchanged. If
// the header is not valid, the error is forbidden.
func (s *Signer) Receive(r *http.Request) (*http.Request, error) {
	values := r.Header.Values(Header)
	if len(values) == 0 {
		return r, nil
	}
	h, ok := s.check(r, values)
	if !ok {
		return r, fault.New(fault.Forbidden, "forward.receive",
			"%s: is not valid; only nodes of one cluster send it, with the same archive key and clocks that differ by less than %s", Header, hopAge)
	}
	in := r.WithContext(context.WithValue(r.Context(), hopKey{}, h))
	in.Header = r.Header.Clone()
	for _, name := range []string{Header, "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		in.Header.Del(name)
	}
	in.RemoteAddr = ""
	if h.Client.IsValid() {
		in.RemoteAddr = net.JoinHostPort(h.Client.String(), "0")
	}
	if base := h.BaseURL(); base != nil {
		in.Host = base.Host
	}
	return in, nil
}

// check checks the header. It must be there once, for this node, and recent.
func (s *Signer) check(r *http.Request, values []string) (h Hop, ok bool) {
	encoded, mac, found := strings.Cut(values[0], ".")
	if !found || len(values) != 1 {
		return h, false
	}
	doc, err1 := base64.RawURLEncoding.DecodeString(encoded)
	given, err2 := base64.RawURLEncoding.DecodeString(mac)
	if err1 != nil || err2 != nil || !hmac.Equal(given, s.mac(doc, r.Method, r.RequestURI, r.Header)) {
		return h, false
	}
	if json.Unmarshal(doc, &h) != nil {
		return h, false
	}
	age := s.now().Sub(time.UnixMilli(h.At)).Abs()
	return h, h.To == s.self && age < hopAge
}

// URLMAC authenticates the URL of a node, for [placement.Facts]: calls with the keys of clients are
// sent there, and a program that can write to the database where nodes find it does not have the secret.
func (s *Signer) URLMAC(nodeID, url string) string {
	mac := hmac.New(sha256.New, s.secret)
	for _, part := range []string{"url", nodeID, url} {
		sum := sha256.Sum256([]byte(part))
		mac.Write(sum[:])
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// checkURL returns node_unavailable if a node has not signed its URL.
func (s *Signer) checkURL(n placement.Node) error {
	if hmac.Equal([]byte(n.Facts.URLMAC), []byte(s.URLMAC(n.ID, n.URL))) {
		return nil
	}
	return fault.Wrap(errNotSent, fault.NodeUnavailable, "forward.url", "the URL of node "+n.ID+" in the catalogue is not signed with the archive key of this node, so no calls are passed on to it")
}

// mac authenticates the header's document together with the call and its credentials, so that
// a header that was seen once is of no use with others.
func (s *Signer) mac(doc []byte, method, uri string, header http.Header) []byte {
	mac := hmac.New(sha256.New, s.secret)
	for _, part := range [][]byte{doc, []byte(method), []byte(uri), []byte(strings.Join(header.Values("Authorization"), "\n")), []byte(strings.Join(header.Values("X-Api-Key"), "\n"))} {
		sum := sha256.Sum256(part)
		mac.Write(sum[:])
	}
	return mac.Sum(nil)
}
