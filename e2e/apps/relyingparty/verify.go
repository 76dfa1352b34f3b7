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

// check holds what every ceremony has against what was asked for, and gives
// the signature counter.
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
		return 0, fmt.Errorf("a ceremony of type %s", client.Type)
	case !fresh:
		return 0, errors.New("not the challenge that was given")
	case client.Origin != s.URL:
		return 0, fmt.Errorf("from the origin %s", client.Origin)
	case len(in.AuthData) < leastLength:
		return 0, errors.New("authenticator data is short")
	case !bytes.Equal(in.AuthData[:hashLength], id[:]):
		return 0, errors.New("for another relying party")
	case in.AuthData[flagsAt]&(userPresent|userVerified) != userPresent|userVerified:
		return 0, fmt.Errorf("the user was not there: flags %b", in.AuthData[flagsAt])
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
		return "", errors.New("an unknown passkey")
	}
	client := sha256.Sum256(in.ClientData)
	signed := sha256.Sum256(slices.Concat(in.AuthData, client[:]))
	if !ecdsa.VerifyASN1(p.key, signed[:], in.Signature) {
		return "", errors.New("the signature is wrong")
	}
	if count <= p.count {
		return "", fmt.Errorf("the counter is %d after %d: a cloned passkey", count, p.count)
	}
	p.count = count
	if string(in.Handle) != p.name {
		return "", errors.New("the user handle is another's")
	}
	return p.name, nil
}
