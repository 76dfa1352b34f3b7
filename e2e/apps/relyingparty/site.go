// Package relyingparty is a web site with passkeys as the only way to sign in. It checks
// everything that a relying party must check (WebAuthn, "Verifying an Authentication
// Assertion").
//
// Its page has the functions register(name) and signIn(). Each resolves with the
// server's answer: "ok: name", or why it refused. /pop is the same page, and /framed
// shows it in a frame.
package relyingparty

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"crypto/ecdsa"
)

// ID is the relying party's ID.
const ID = "localhost"

// Site is a running relying party.
type Site struct {
	URL string // its origin

	mu         sync.Mutex
	challenges map[string]bool // challenges without an answer
	passkeys   map[string]*passkey
}

// passkey is the data that the site stores for a credential.
type passkey struct {
	name  string
	key   *ecdsa.PublicKey
	count uint32
}

// Start serves the site until the test ends.
func Start(t testing.TB) *Site {
	t.Helper()
	s := &Site{challenges: map[string]bool{}, passkeys: map[string]*passkey{}}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s.URL = "http://" + net.JoinHostPort(ID, port)
	return s
}

// Count returns the signature counter that the site has stored for the passkey with a
// name.
func (s *Site) Count(name string) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.passkeys {
		if p.name == name {
			return p.count
		}
	}
	return 0
}

func (s *Site) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch r.URL.Path {
	case "/", "/pop":
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, page) // fails if the browser has disconnected
	case "/framed":
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, framed, s.URL)
	case "/challenge":
		_, _ = fmt.Fprint(w, s.challenge())
	case "/register", "/sign-in":
		_, _ = fmt.Fprint(w, s.take(r))
	default:
		http.NotFound(w, r)
	}
}

func (s *Site) challenge() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	text := base64.RawURLEncoding.EncodeToString(raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.challenges[text] = true
	return text
}

// response is the credential data that the page sends.
type response struct {
	ID, Name                                string
	ClientData, AuthData, Signature, Handle []byte
	PublicKey                               []byte // SPKI; only for a registration
}

func (s *Site) take(r *http.Request) string {
	var in response
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return "refused: " + err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var name string
	var err error
	if r.URL.Path == "/register" {
		name, err = s.register(in)
	} else {
		name, err = s.signIn(in)
	}
	if err != nil {
		return "refused: " + err.Error()
	}
	return "ok: " + name
}

func (s *Site) register(in response) (string, error) {
	count, err := s.check(in, "webauthn.create")
	if err != nil {
		return "", err
	}
	key, err := x509.ParsePKIXPublicKey(in.PublicKey)
	if err != nil {
		return "", err
	}
	ec, ok := key.(*ecdsa.PublicKey)
	if !ok {
		return "", fmt.Errorf("unsupported key type %T", key)
	}
	s.passkeys[in.ID] = &passkey{name: in.Name, key: ec, count: count}
	return in.Name, nil
}
