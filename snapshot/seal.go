package snapshot

import (
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

// payloadSum hashes an age file's payload: everything after the header, whose last line
// is "--- MAC". So a new header for other recipients does not change what a document
// binds.
type payloadSum struct {
	head    []byte // the header so far; nil once the payload begins
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
				return 0, errNoHeader
			}
			return len(p), nil
		}
		body, s.head = s.head[end:], nil
	}
	s.payload.Write(body)
	s.size += int64(len(body))
	return len(p), nil
}

func (s *payloadSum) hex() string { return hex.EncodeToString(s.payload.Sum(nil)) }

// seal encrypts to the recipients while write writes the plaintext.
func (k Keys) seal(dst io.Writer, write func(io.Writer) error) error {
	w, err := age.Encrypt(dst, ageRecipients(k.recipients)...)
	if err != nil {
		return err
	}
	if err := write(w); err != nil {
		return err // not closed: without its last chunk the stream cannot be opened
	}
	return w.Close()
}

// open decrypts src. sealedTo lists the recipients that the document names, in case the
// header names none.
func (k Keys) open(src io.Reader, id string, sealedTo []string) (io.Reader, error) {
	o := &opener{identities: k.identities}
	plain, err := age.Decrypt(src, o)
	if missing := k.identityMissing(err, id, o.named, sealedTo); missing != nil {
		return nil, missing
	}
	return plain, err
}

// identityMissing returns identity_missing, with the recipients' names, if a file did not
// open because it is sealed to others. It returns nil if the file opened or is damaged.
// named lists the recipients that the file's header names, sealedTo those that its
// document names. A file is damaged if its header names an identity that fails to open
// it.
func (k Keys) identityMissing(err error, id string, named, sealedTo []string) error {
	var foreign *age.NoIdentityMatchError
	if named == nil {
		named = sealedTo
	}
	if !errors.As(err, &foreign) || k.holds(named) {
		return nil
	}
	message := "no identity here opens it"
	if id != "" {
		message = "snapshot " + id + ": " + message
	}
	if len(named) > 0 {
		message += "; it is sealed to " + strings.Join(named, ", ")
	}
	return fault.Wrap(err, fault.IdentityMissing, "snapshot.unseal", message)
}

// holds reports whether one of the identities belongs to the recipients.
func (k Keys) holds(recipients []string) bool {
	return slices.ContainsFunc(k.IdentityRecipients(), func(own string) bool { return slices.Contains(recipients, own) })
}

// sealedReader reads an archive's plaintext, the tar.zst. At its end it compares the
// sealed bytes with what the document binds.
type sealedReader struct {
	id    string
	plain io.Reader
	raw   *rawReader
	want  *Archive // nil: nothing to compare with
	err   error    // the first error, even if the readers above hide it
}

// rawReader reads the stored bytes, sums them, and keeps the store's own error, which
// must not be taken for damage.
type rawReader struct {
	ctx context.Context // of the call that the reader was opened for
	src io.ReadCloser
	sum *payloadSum
	err error
}

func (r *rawReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		r.err = fault.Wrap(err, fault.Timeout, "snapshot.read", "reading the archive was cancelled")
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

// finish reads the bytes that the decryption left and compares.
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

// damaged returns the error for an archive or document that differs from what was saved.
func damaged(id, what string, err error) error {
	return &fault.Error{Code: fault.ArchiveDamaged, Op: "snapshot.open", Message: "snapshot " + id + ": " + what, Err: err}
}
