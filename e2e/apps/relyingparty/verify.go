package relyingparty

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// The layout of authenticator data (WebAuthn, section 6.1), in bytes.
const (
	hashLength  = 32
	flagsAt     = hashLength
	countAt     = flagsAt + 1
	leastLength = countAt + 4
)

// userPresent and userVerified are the flags that must be set.
const userPresent, userVerified = 1 << 0, 1 << 2

// check makes the checks that registration and sign-in share. It returns the signature
// counter.
func (s *Site) check(in response, kind string) (uint32, error) {
	var client struct{ Type, Challenge, Origin string }
	if err := json.Unmarshal(in.ClientData, &client); err != nil {
		return 0, err
	}
	fresh := s.challenges[client.Challenge]
	delete(s.challenges, client.Challenge)
	id := sha256.Sum256([]byte(ID))
	switch {
	case client.Type != kind:
		return 0, fmt.Errorf("type: is %s, which is the wrong ceremony", client.Type)
	case !fresh:
		return 0, errors.New("challenge: not one that this site issued")
	case client.Origin != s.URL:
		return 0, fmt.Errorf("origin: %s is not this site", client.Origin)
	case len(in.AuthData) < leastLength:
		return 0, errors.New("authenticator data: too short")
	case !bytes.Equal(in.AuthData[:hashLength], id[:]):
		return 0, errors.New("relying party: the ID hash is another site's")
	case in.AuthData[flagsAt]&(userPresent|userVerified) != userPresent|userVerified:
		return 0, fmt.Errorf("flags: %b; user presence and verification are required", in.AuthData[flagsAt])
	}
	return binary.BigEndian.Uint32(in.AuthData[countAt:]), nil
}

// signIn verifies an assertion; its counter must have grown.
func (s *Site) signIn(in response) (string, error) {
	count, err := s.check(in, "webauthn.get")
	if err != nil {
		return "", err
	}
	p := s.passkeys[in.ID]
	if p == nil {
		return "", errors.New("credential: unknown passkey")
	}
	client := sha256.Sum256(in.ClientData)
	signed := sha256.Sum256(slices.Concat(in.AuthData, client[:]))
	if !ecdsa.VerifyASN1(p.key, signed[:], in.Signature) {
		return "", errors.New("signature: does not verify")
	}
	if count <= p.count {
		return "", fmt.Errorf("the counter is %d after %d: a cloned passkey", count, p.count)
	}
	p.count = count
	if string(in.Handle) != p.name {
		return "", errors.New("user handle: belongs to another passkey")
	}
	return p.name, nil
}
