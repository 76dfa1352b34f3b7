package extension

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"hash"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// A CRX3 file has five parts: the magic, a version, a length, a header of that length (a
// protocol buffer), and the zip that the header signs (Chromium's
// components/crx_file/crx3.proto and crx_verifier.cc).
const (
	crxMagic   = "Cr24"
	crxVersion = 3
	crxPrefix  = 12       // bytes before the header
	maxHeader  = 1 << 20  // bytes; real ones have a few hundred
	maxProofs  = 16       // signatures in a header; real files have one to three
	maxKey     = 16 << 10 // bytes of one public key

	// signedContext is the prefix of the data that a signature covers.
	signedContext = "CRX3 SignedData\x00"
)

// proof is one signature of a CRX3 header.
type proof struct {
	key, signature []byte
	rsa            bool // otherwise ECDSA on P-256
}

// crxHeader is a decoded CRX3 header.
type crxHeader struct {
	proofs     []proof
	signedData []byte // the message with the ID
	id         []byte // 16 bytes
}

// openCRX returns the zip of a .crx and the public key from which its ID is derived,
// after verifying every signature. A file without the CRX magic is returned unchanged,
// without a key.
func openCRX(r io.ReaderAt, size int64) (body *io.SectionReader, key []byte, err error) {
	var prefix [crxPrefix]byte
	if _, err := r.ReadAt(prefix[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, unreadable("the file", err)
	}
	if string(prefix[:4]) != crxMagic {
		return io.NewSectionReader(r, 0, size), nil, nil
	}
	if v := binary.LittleEndian.Uint32(prefix[4:]); v != crxVersion {
		return nil, nil, invalid("the .crx has format version %d; only version %d is supported", v, crxVersion)
	}
	length := int64(binary.LittleEndian.Uint32(prefix[8:]))
	if length > maxHeader || crxPrefix+length > size {
		return nil, nil, invalid("the .crx states a header of %d bytes, which exceeds the limit or the size of the file", length)
	}
	raw := make([]byte, length)
	if _, err := r.ReadAt(raw, crxPrefix); err != nil {
		return nil, nil, unreadable("the header of the .crx", err)
	}
	h, err := parseHeader(raw)
	if err != nil {
		return nil, nil, err
	}
	body = io.NewSectionReader(r, crxPrefix+length, size-crxPrefix-length)
	digest, err := h.digest(body)
	if err != nil {
		return nil, nil, unreadable("the .crx", err)
	}
	if key, err = h.verify(digest); err != nil {
		return nil, nil, err
	}
	_, err = body.Seek(0, io.SeekStart)
	return body, key, err
}

// digest returns the hash that the signatures sign.
func (h *crxHeader) digest(body io.Reader) ([]byte, error) {
	sum := sha256.New()
	writeSigned(sum, h.signedData)
	_, err := io.Copy(sum, body)
	return sum.Sum(nil), err
}

func writeSigned(sum hash.Hash, signedData []byte) {
	sum.Write([]byte(signedContext))
	var length [4]byte
	binary.LittleEndian.PutUint32(length[:], uint32(len(signedData)))
	sum.Write(length[:])
	sum.Write(signedData)
}

// verify checks every signature and returns the public key whose hash is the ID.
func (h *crxHeader) verify(digest []byte) (key []byte, err error) {
	for _, p := range h.proofs {
		if !p.valid(digest) {
			return nil, invalid("a signature of the .crx does not match its contents")
		}
		if sum := sha256.Sum256(p.key); bytes.Equal(sum[:16], h.id) {
			key = p.key
		}
	}
	if key == nil {
		return nil, invalid("the .crx is not signed with the key of its ID")
	}
	return key, nil
}

func (p proof) valid(digest []byte) bool {
	public, err := x509.ParsePKIXPublicKey(p.key)
	if err != nil {
		return false
	}
	switch k := public.(type) {
	case *rsa.PublicKey:
		return p.rsa && rsa.VerifyPKCS1v15(k, crypto.SHA256, digest, p.signature) == nil
	case *ecdsa.PublicKey:
		return !p.rsa && ecdsa.VerifyASN1(k, digest, p.signature)
	default:
		return false
	}
}

// These are field numbers of crx3.proto.
const (
	fieldRSA        = 2     // CrxFileHeader.sha256_with_rsa
	fieldECDSA      = 3     // CrxFileHeader.sha256_with_ecdsa
	fieldSignedData = 10000 // CrxFileHeader.signed_header_data
	fieldKey        = 1     // AsymmetricKeyProof.public_key
	fieldSignature  = 2     // AsymmetricKeyProof.signature
	fieldID         = 1     // SignedData.crx_id
)

func parseHeader(raw []byte) (*crxHeader, error) {
	h := &crxHeader{}
	err := fields(raw, func(number protowire.Number, value []byte) error {
		switch number {
		case fieldRSA, fieldECDSA:
			p := proof{rsa: number == fieldRSA}
			h.proofs = append(h.proofs, p)
			if len(h.proofs) > maxProofs {
				return errMalformed
			}
			return h.proofs[len(h.proofs)-1].parse(value)
		case fieldSignedData:
			h.signedData = value
		}
		return nil
	})
	if err == nil {
		err = fields(h.signedData, func(number protowire.Number, value []byte) error {
			if number == fieldID {
				h.id = value
			}
			return nil
		})
	}
	if err != nil || len(h.id) != 16 {
		return nil, invalid("the header of the .crx is malformed")
	}
	return h, nil
}

func (p *proof) parse(raw []byte) error {
	return fields(raw, func(number protowire.Number, value []byte) error {
		switch {
		case number == fieldKey && len(value) > maxKey:
			return errMalformed
		case number == fieldKey:
			p.key = value
		case number == fieldSignature:
			p.signature = value
		}
		return nil
	})
}

var errMalformed = errors.New("malformed protocol buffer")

// fields calls each with the length-delimited fields of a protocol buffer message, in
// order, and skips fields of other types.
func fields(raw []byte, each func(number protowire.Number, value []byte) error) error {
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return errMalformed
		}
		raw = raw[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(raw)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, raw)
		}
		if n < 0 {
			return errMalformed
		}
		raw = raw[n:]
		if kind != protowire.BytesType {
			continue
		}
		if err := each(number, value); err != nil {
			return err
		}
	}
	return nil
}
