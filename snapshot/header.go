package snapshot

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"filippo.io/age"
)

// This file reads and writes the header of an age file (https://age-encryption.org/v1).
// The header is lines that end with "--- MAC"; they wrap the file's key for each
// recipient. A new header around the same key opens the same payload. So a file's
// recipients can change while its payload and its name stay.

// maxHeader limits an age header, in bytes; one recipient takes about 200.
const maxHeader = 64 << 10

const (
	ageIntro = "age-encryption.org/v1\n"
	// sealedToStanza is a stanza that Stasis adds and other programs ignore. Its arguments
	// are the recipients. The stanzas of age do not name their recipients, and an error
	// should name the identity that is missing.
	sealedToStanza = "stasis/sealed-to"
)

// sealedTo writes that stanza. It is an age.Recipient that wraps no key.
type sealedTo []string

// Wrap implements age.Recipient.
func (s sealedTo) Wrap([]byte) ([]*age.Stanza, error) {
	return []*age.Stanza{{Type: sealedToStanza, Args: s}}, nil
}

// opener tries identities and keeps the recipients that the header names. They are nil if
// the header names none, and must not be trusted until an identity has opened it.
type opener struct {
	identities []*age.X25519Identity
	named      []string
}

// Unwrap implements age.Identity.
func (o *opener) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	for _, s := range stanzas {
		if s.Type != sealedToStanza {
			continue
		}
		if _, err := ParseRecipients(s.Args); err == nil {
			o.named = s.Args
		}
	}
	for _, x := range o.identities {
		key, err := x.Unwrap(stanzas)
		if !errors.Is(err, age.ErrIncorrectIdentity) {
			return key, err
		}
	}
	return nil, age.ErrIncorrectIdentity
}

// ageRecipients returns what a file is sealed to: the keys, and the stanza that names
// them.
func ageRecipients(to []*age.X25519Recipient) []age.Recipient {
	var list []age.Recipient
	for _, r := range to {
		list = append(list, r)
	}
	return append(list, sealedTo(namesOf(to)))
}

// newHeader writes the header of a file with the given key.
func newHeader(fileKey []byte, to []*age.X25519Recipient) ([]byte, error) {
	if len(to) == 0 {
		return nil, errors.New("there is no recipient to seal to")
	}
	var head bytes.Buffer
	head.WriteString(ageIntro)
	for _, r := range ageRecipients(to) {
		stanzas, err := r.Wrap(fileKey)
		if err != nil {
			return nil, err
		}
		for _, s := range stanzas {
			writeStanza(&head, s)
		}
	}
	head.WriteString("---")
	key, err := hkdf.Key(sha256.New, fileKey, nil, "header", sha256.Size)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&head, " %s\n", base64.RawStdEncoding.EncodeToString(keyed(key, head.Bytes())))
	return head.Bytes(), nil
}

// writeStanza writes a stanza. Its body has lines of 64 characters; the last line is
// shorter and may be empty.
func writeStanza(head *bytes.Buffer, s *age.Stanza) {
	head.WriteString("-> " + s.Type)
	for _, arg := range s.Args {
		head.WriteString(" " + arg)
	}
	head.WriteByte('\n')
	body := base64.RawStdEncoding.EncodeToString(s.Body)
	for len(body) >= 64 {
		head.WriteString(body[:64] + "\n")
		body = body[64:]
	}
	head.WriteString(body + "\n")
}

// readHeader reads an age file's header. rest reads the payload.
func readHeader(src io.Reader) (head []byte, rest io.Reader, err error) {
	buffer := make([]byte, 4<<10)
	for {
		n, err := src.Read(buffer)
		head = append(head, buffer[:n]...)
		if end := headerEnd(head); end >= 0 {
			return head[:end:end], io.MultiReader(bytes.NewReader(head[end:]), src), nil
		}
		switch {
		case err == io.EOF, len(head) > maxHeader:
			return nil, nil, errNoHeader
		case err != nil:
			return nil, nil, err
		}
	}
}

var errNoHeader = errors.New("it does not begin with an age header")

// headerEnd returns the offset at which the payload begins, or -1.
func headerEnd(head []byte) int {
	mac := bytes.Index(head, []byte("\n--- "))
	if mac < 0 {
		return -1
	}
	line := bytes.IndexByte(head[mac+1:], '\n')
	if line < 0 {
		return -1
	}
	return mac + 1 + line + 1
}

// fileKey opens a header, checks its MAC, and returns the recipients that it names.
func (k Keys) fileKey(head []byte) (key []byte, named []string, err error) {
	o := &opener{identities: k.identities}
	key, err = age.DecryptHeader(head, o)
	return key, o.named, err
}

// newRecipients returns the recipients of a new header: those of the keys, and those of
// named that are not in retire.
func (k Keys) newRecipients(named, retire []string) ([]*age.X25519Recipient, error) {
	others, err := ParseRecipients(slices.DeleteFunc(slices.Clone(named), func(r string) bool { return slices.Contains(retire, r) }))
	if err != nil {
		return nil, err
	}
	all := Keys{recipients: slices.Clone(k.recipients)}
	for _, r := range others {
		all.sealTo(r)
	}
	return all.recipients, nil
}

// rewrapHeader returns a new header for the wanted recipients. sealedTo lists the file's
// recipients in case its header does not name them. A nil header means that the file
// already has the wanted recipients.
func (k Keys) rewrapHeader(head []byte, id string, sealedTo, retire []string) (newHead []byte, to []string, err error) {
	key, named, err := k.fileKey(head)
	if missing := k.identityMissing(err, id, named, sealedTo); missing != nil {
		return nil, nil, missing
	}
	if err != nil {
		return nil, nil, damaged(id, "its age header cannot be opened", err)
	}
	from := named
	if from == nil {
		from = sealedTo
	}
	recipients, err := k.newRecipients(from, retire)
	if err != nil {
		return nil, nil, damaged(id, "it names an invalid recipient", err)
	}
	to = namesOf(recipients)
	if sameNames(named, to) {
		return nil, to, nil
	}
	newHead, err = newHeader(key, recipients)
	return newHead, to, err
}

func namesOf(recipients []*age.X25519Recipient) []string {
	var names []string
	for _, r := range recipients {
		names = append(names, r.String())
	}
	return names
}

// sameNames compares two lists without regard to order.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
