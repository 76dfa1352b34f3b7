package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
)

// maxHeader bounds an age header, in bytes; one recipient takes about 200.
const maxHeader = 64 << 10

// payloadSum hashes an age file's payload: all that follows the header, whose
// last line is "--- MAC". A header that is written anew for other recipients
// therefore changes nothing that a document binds.
type payloadSum struct {
	head    []byte // the header so far; nil in the payload
	payload hash.Hash
	size    int64 // of the payload, bytes
	stored  int64 // with the header, bytes
}

func newPayloadSum() *payloadSum { return &payloadSum{head: []byte{}, payload: sha256.New()} }

func (s *payloadSum) Write(p []byte) (int, error) {
	s.stored += int64(len(p))
	body := p
	if s.head != nil {
		s.head = append(s.head, p...)
		end := headerEnd(s.head)
		if end < 0 {
			if len(s.head) > maxHeader {
				return 0, errors.New("it does not begin with an age header")
			}
			return len(p), nil
		}
		body, s.head = s.head[end:], nil
	}
	s.payload.Write(body)
	s.size += int64(len(body))
	return len(p), nil
}

// headerEnd is where the payload begins, or -1.
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

func (s *payloadSum) hex() string { return hex.EncodeToString(s.payload.Sum(nil)) }

// seal encrypts to the recipients while write writes.
func (k Keys) seal(dst io.Writer, write func(io.Writer) error) error {
	recipients := make([]age.Recipient, len(k.recipients))
	for i, r := range k.recipients {
		recipients[i] = r
	}
	w, err := age.Encrypt(dst, recipients...)
	if err != nil {
		return err
	}
	if err := write(w); err != nil {
		return err // not closed: a stream without its last chunk opens for nobody
	}
	return w.Close()
}

// open decrypts. sealedTo are the recipients that the document tells, to say
// which identity is missing, and to tell a damaged header from a foreign one.
func (k Keys) open(src io.Reader, id string, sealedTo []string) (io.Reader, error) {
	const op = "snapshot.unseal"
	missing := fault.New(fault.IdentityMissing, op, "snapshot %s: no identity here opens it", id)
	if len(sealedTo) > 0 {
		missing.Message += "; it is sealed to " + strings.Join(sealedTo, ", ")
	}
	if len(k.identities) == 0 {
		return nil, missing
	}
	identities := make([]age.Identity, len(k.identities))
	for i, x := range k.identities {
		identities[i] = x
	}
	plain, err := age.Decrypt(src, identities...)
	var foreign *age.NoIdentityMatchError
	if errors.As(err, &foreign) && !k.holds(sealedTo) {
		missing.Err = err
		return nil, missing
	}
	return plain, err
}

// holds reports whether one of the identities belongs to the recipients.
func (k Keys) holds(recipients []string) bool {
	return slices.ContainsFunc(k.identities, func(x *age.X25519Identity) bool {
		return slices.Contains(recipients, x.Recipient().String())
	})
}

// sealedReader gives an archive's plaintext, the tar.zst, and at its end
// compares what was read of the sealed bytes with what the document binds.
type sealedReader struct {
	id    string
	plain io.Reader
	raw   *rawReader
	want  *Archive // nil: nothing to compare with
	err   error    // the first one, whatever the readers above make of it
}

// rawReader reads the stored bytes, sums them up, and keeps the store's own
// error, which must not be taken for damage.
type rawReader struct {
	ctx context.Context // of the call that the reader was opened for
	src io.ReadCloser
	sum *payloadSum
	err error
}

func (r *rawReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		r.err = fault.Wrap(err, fault.Timeout, "snapshot.read", "reading the archive was given up")
		return 0, r.err
	}
	n, err := r.src.Read(p)
	if err != nil && err != io.EOF {
		r.err = fault.Wrap(err, fault.StoreFailed, "snapshot.read", "")
		return n, r.err
	}
	if _, bad := r.sum.Write(p[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

func (s *sealedReader) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.plain.Read(p)
	switch {
	case err == io.EOF:
		if s.err = s.finish(); s.err == nil {
			return n, io.EOF
		}
	case err != nil:
		s.err = s.fail(err)
	}
	return n, s.err
}

// finish reads what the decryption left and compares.
func (s *sealedReader) finish() error {
	if _, err := io.Copy(io.Discard, s.raw); err != nil {
		return s.fail(err)
	}
	if w := s.want; w != nil && (s.raw.sum.size != w.PayloadSize || s.raw.sum.hex() != w.PayloadSHA256) {
		return damaged(s.id, "its sealed payload is not the one that was saved", nil)
	}
	return nil
}

func (s *sealedReader) fail(err error) error {
	if s.raw.err != nil {
		return s.raw.err
	}
	return damaged(s.id, "its sealed bytes do not decrypt", err)
}

func (s *sealedReader) Close() error { return s.raw.src.Close() }

// damaged is the error for an archive or document that is not what was saved.
func damaged(id, what string, err error) error {
	return &fault.Error{Code: fault.ArchiveDamaged, Op: "snapshot.open", Message: "snapshot " + id + ": " + what, Err: err}
}
