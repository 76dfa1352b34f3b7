package extension_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/fault"
)

// field encodes one length-delimited field of a protocol buffer.
func field(number uint64, value []byte) []byte {
	out := binary.AppendUvarint(nil, number<<3|2)
	return append(binary.AppendUvarint(out, uint64(len(value))), value...)
}

// signer makes proofs of a CRX3 header.
type signer struct {
	number uint64 // of its field in the header
	key    crypto.Signer
}

func (s signer) public(t testing.TB) []byte {
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// crxOf signs a zip with every signer; the first one's key determines the ID.
func crxOf(t testing.TB, body []byte, signers ...signer) []byte {
	t.Helper()
	id := sha256.Sum256(signers[0].public(t))
	data := field(1, id[:16])
	signed := append([]byte("CRX3 SignedData\x00"), binary.LittleEndian.AppendUint32(nil, uint32(len(data)))...)
	digest := sha256.Sum256(append(append(signed, data...), body...))
	var header []byte
	for _, s := range signers {
		signature, err := s.key.Sign(rand.Reader, digest[:], crypto.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		header = append(header, field(s.number, append(field(1, s.public(t)), field(2, signature)...))...)
	}
	return wrap(append(header, field(10000, data)...), body)
}

func wrap(header, body []byte) []byte {
	out := append([]byte("Cr24"), 3, 0, 0, 0)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(header)))
	return append(append(out, header...), body...)
}

// signers returns two throwaway keys, always the same: Go fuzzing runs in several
// processes, and one of them makes the inputs of the others.
func signers(t testing.TB) (withRSA, withECDSA signer) {
	t.Helper()
	rest, err := os.ReadFile("testdata/signers.pem")
	if err != nil {
		t.Fatal(err)
	}
	var keys [2]crypto.Signer
	for i := range keys {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatal("a key is missing")
		}
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key.(crypto.Signer)
	}
	return signer{2, keys[0]}, signer{3, keys[1]}
}

// The key that signed a .crx determines its ID, whatever its manifest says.
func TestCRX(t *testing.T) {
	r, e := signers(t)
	body := zipOf(t, entry{name: "manifest.json", body: strings.Replace(goodManifest, "{", `{"key": "AAAA",`, 1)})
	for name, list := range map[string][]signer{"RSA": {r}, "ECDSA": {e}, "both": {e, r}} {
		info, _, err := write(t, crxOf(t, body, list...))
		if err != nil || info.ID != idOf(list[0].public(t)) {
			t.Errorf("%s: %+v %v", name, info, err)
		}
	}
}

func TestRefusedCRX(t *testing.T) {
	r, e := signers(t)
	body := zipOf(t, entry{name: "manifest.json", body: goodManifest})
	whole := crxOf(t, body, r, e)
	other := crxOf(t, zipOf(t, entry{name: "manifest.json", body: goodManifest}, entry{name: "x"}), r, e)
	change := func(at int, to byte) []byte {
		raw := bytes.Clone(whole)
		raw[at] = to
		return raw
	}
	header := whole[12 : len(whole)-len(body)]
	foreign := sha256.Sum256(e.public(t))
	for name, c := range map[string]struct {
		raw  []byte
		says string
	}{
		"version 2":       {change(4, 2), "format version 2"},
		"long header":     {change(11, 0x7f), "header of"},
		"cut":             {whole[:11], "header of"},
		"header alone":    {whole[:len(whole)-len(body)], "does not match"},
		"other contents":  {append(bytes.Clone(whole[:len(whole)-len(body)]), other[len(other)-len(body):]...), "does not match"},
		"a byte more":     {append(bytes.Clone(whole), 0), "does not match"},
		"no signatures":   {wrap(field(10000, field(1, foreign[:16])), body), "not signed with the key"},
		"no ID":           {wrap(nil, body), "header of the .crx is malformed"},
		"a short ID":      {wrap(field(10000, field(1, []byte("short"))), body), "malformed"},
		"not a message":   {wrap([]byte{0xff, 0xff}, body), "malformed"},
		"many signatures": {wrap(append(bytes.Repeat(field(2, nil), 20), header...), body), "malformed"},
		"a bad signature": {wrap(append(field(2, append(field(1, r.public(t)), field(2, []byte("?"))...)), header...), body), "does not match"},
		"the wrong kind":  {crxOf(t, body, signer{3, r.key}), "does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := write(t, c.raw)
			if !fault.Is(err, fault.InvalidExtension) || !strings.Contains(fault.MessageOf(err), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
	// The header has an ID whose key did not sign.
	stranger := crxOf(t, body, signer{3, e.key}, r)
	stranger = bytes.Replace(stranger, foreign[:16], make([]byte, 16), 1)
	if _, _, err := write(t, stranger); !fault.Is(err, fault.InvalidExtension) {
		t.Errorf("another ID: %v", err)
	}
}

// Whatever a header contains, only signed files are accepted.
func FuzzCRX(f *testing.F) {
	r, e := signers(f)
	body := zipOf(f, entry{name: "manifest.json", body: goodManifest})
	for _, raw := range [][]byte{crxOf(f, body, r), crxOf(f, body, e, r), wrap(nil, body), wrap(field(10000, field(1, make([]byte, 16))), body)} {
		f.Add(raw)
	}
	ids := map[string]bool{idOf(r.public(f)): true, idOf(e.public(f)): true}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !bytes.HasPrefix(raw, []byte("Cr24")) {
			return
		}
		info, err := extension.Write(t.Context(), bytes.NewReader(raw), int64(len(raw)), t.TempDir())
		if err == nil && !ids[info.ID] {
			t.Fatalf("accepted: %+v", info)
		}
		if err != nil && fault.Is(err, fault.Internal) {
			t.Fatal(err)
		}
	})
}
