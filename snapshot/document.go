package snapshot

import (
	"bytes"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stasisd/stasis/fault"
)

// maxDocument limits a document, in bytes, written or read.
const maxDocument = 8 << 20

// document is a snapshot's JSON file, in the form of the agent SDKs' SnapshotStorage. It
// names its own location and ID, so that a misplaced document is refused. It binds its
// archive by hash and size.
type document struct {
	Scope         string       `json:"scope"`
	SchemaVersion string       `json:"schemaVersion"`
	CreatedAt     time.Time    `json:"createdAt"`
	Data          documentData `json:"data"`
	AppData       appData      `json:"appData"`
}

// appData holds what the environment's agents stored with it; {} if nothing.
type appData struct {
	Sealed []byte `json:"sealed,omitempty"` // age file of a sealedPart, base64
}

type documentData struct {
	SnapshotID string   `json:"snapshot_id"`
	Owner      string   `json:"owner"`
	SessionID  string   `json:"session_id"`
	ScopeID    string   `json:"scope_id"`
	Mode       Mode     `json:"mode"`
	Archive    Archive  `json:"archive"`
	Recipients []string `json:"recipients"` // at the time of the save
	// MAC covers the whole document, under its owner's key; see [document.encode].
	// Documents from before 2026-11-22 have none.
	MAC    string         `json:"mac,omitempty"`
	Facts  map[string]any `json:"facts"`
	Sealed []byte         `json:"sealed,omitempty"` // age file of a sealedPart, base64
}

// sealedPart is the part of data or of appData that only an identity opens. It repeats
// the ID, so that it cannot be moved into another document. It has either Private or
// AppData, so that it cannot be moved within its document.
type sealedPart struct {
	SnapshotID string          `json:"snapshot_id"`
	Private    json.RawMessage `json:"private,omitempty"`
	AppData    json.RawMessage `json:"app_data,omitempty"`
}

// newDocument builds the document of a draft and its archive. Times are cut to
// milliseconds, the precision of JavaScript dates.
func newDocument(d Draft, a Archive, keys Keys) ([]byte, error) {
	doc := document{
		Scope: d.Location.Scope, SchemaVersion: versionOf(a),
		CreatedAt: d.CreatedAt.UTC().Truncate(time.Millisecond),
		Data: documentData{
			SnapshotID: d.ID, Owner: d.Location.Owner, SessionID: d.Location.Session, ScopeID: d.Location.ScopeID,
			Mode: d.Mode, Archive: a, Recipients: keys.Recipients(), Facts: d.Facts,
		},
	}
	if d.Facts == nil {
		doc.Data.Facts = map[string]any{}
	}
	var err error
	if d.Private != nil {
		if doc.Data.Sealed, err = keys.sealPart(sealedPart{SnapshotID: d.ID, Private: d.Private}); err != nil {
			return nil, err
		}
	}
	if d.AppData != nil {
		if doc.AppData.Sealed, err = keys.sealPart(sealedPart{SnapshotID: d.ID, AppData: d.AppData}); err != nil {
			return nil, err
		}
	}
	return doc.encode(keys)
}

func (k Keys) sealPart(p sealedPart) ([]byte, error) {
	plain, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var sealed bytes.Buffer
	err = k.seal(&sealed, func(w io.Writer) error { _, err := w.Write(plain); return err })
	return sealed.Bytes(), err
}

// noMAC takes the place of the MAC in a document's bytes while the MAC is computed.
const noMAC = "0000000000000000000000000000000000000000000000000000000000000000"

// encode returns the document's bytes with a correct MAC. The MAC binds what nothing else
// binds: mode, time and facts. It also binds everything that an attacker with write
// access to the store could change together.
func (d document) encode(keys Keys) ([]byte, error) {
	d.Data.MAC = noMAC
	body, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	if len(body) > maxDocument {
		return nil, fmt.Errorf("the document is larger than %d bytes", maxDocument)
	}
	mac := keys.documentMAC(d.Data.Owner, body)
	return bytes.Replace(body, []byte(`"mac":"`+noMAC), []byte(`"mac":"`+mac), 1), nil
}

// checkMAC reports whether the document, parsed from body, has a correct MAC or none.
func (d *document) checkMAC(keys Keys, body []byte) bool {
	mac := []byte(d.Data.MAC)
	if len(mac) == 0 {
		return true
	}
	was := bytes.Replace(body, append([]byte(`"mac":"`), mac...), []byte(`"mac":"`+noMAC), 1)
	return hmac.Equal(mac, []byte(keys.documentMAC(d.Data.Owner, was)))
}

// parseDocument reads the document that should be snapshot id at loc. An empty id accepts
// any ID. Hostile input is archive_damaged. A schemaVersion that this build does not know
// is unsupported.
func parseDocument(body []byte, loc Location, id string) (*document, error) {
	called := id
	if called == "" {
		called = "latest"
	}
	bad := func(what string, err error) error { return damaged(called, "its document "+what, err) }
	if len(body) > maxDocument {
		return nil, bad("is too large", nil)
	}
	var version struct {
		SchemaVersion string `json:"schemaVersion"`
	}
	if err := json.Unmarshal(body, &version); err != nil {
		return nil, bad("is not JSON of the right shape", err)
	}
	if v := version.SchemaVersion; v != SchemaVersion && v != versionWithHead {
		return nil, fault.New(fault.Unsupported, "snapshot.document",
			"snapshot %s has schemaVersion %.20q; this version reads %q and %q", called, v, SchemaVersion, versionWithHead)
	}
	if err := checkUniqueFoldedNames(body); err != nil {
		return nil, bad("is ambiguous", err)
	}
	doc := &document{}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(doc); err != nil {
		return nil, bad("is not JSON of the right shape", err)
	}
	if got := doc.location(); got != loc || id != "" && doc.Data.SnapshotID != id || CheckID(doc.Data.SnapshotID) != nil {
		return nil, bad("belongs to another snapshot", nil)
	}
	if err := doc.check(); err != nil {
		return nil, bad("is not valid", err)
	}
	return doc, nil
}

func (d *document) location() Location {
	return Location{Owner: d.Data.Owner, Session: d.Data.SessionID, Scope: d.Scope, ScopeID: d.Data.ScopeID}
}

// versionOf returns the schemaVersion of a document with this archive. Readers of the first
// version refuse a head, which they do not know.
func versionOf(a Archive) string {
	if a.Head != (Head{}) {
		return versionWithHead
	}
	return SchemaVersion
}

func (d *document) check() error {
	a := d.Data.Archive
	switch {
	case d.SchemaVersion != versionOf(a):
		return fmt.Errorf("its schemaVersion is %q, but that of its archive is %q", d.SchemaVersion, versionOf(a))
	case a.Head != Head{} && d.Data.MAC == "": // a head is used before the rest is verified
		return errors.New("it has a head but no MAC")
	case a.Head != Head{} && (!digestForm.MatchString(a.Head.TarSHA256) || a.Head.Entries <= 0 || a.Head.Entries >= a.Entries || a.Head.TarSize <= 0 || a.Head.TarSize >= a.TarSize):
		return errors.New("a hash, size or number of the head of its archive is out of range")
	case d.Data.Mode != Filesystem && d.Data.Mode != Memory:
		return errors.New("unknown mode")
	case !digestForm.MatchString(a.ID), !digestForm.MatchString(a.PayloadSHA256), !digestForm.MatchString(a.TarSHA256):
		return errors.New("a hash is not 64 hex digits")
	case a.PayloadSize <= 0, a.StoredSize < a.PayloadSize, a.TarSize <= 0, a.Entries < 0:
		return errors.New("a size is out of range")
	case d.CreatedAt.IsZero():
		return errors.New("no createdAt")
	}
	return nil
}

// snapshot returns the document's plain part.
func (d *document) snapshot() Snapshot {
	return Snapshot{
		ID: d.Data.SnapshotID, Location: d.location(), Mode: d.Data.Mode, CreatedAt: d.CreatedAt.UTC(),
		Archive: d.Data.Archive, Facts: d.Data.Facts, Recipients: d.Data.Recipients,
	}
}

// unseal opens the sealed parts of data and of appData; they are nil if absent.
func (d *document) unseal(keys Keys) (private, appData json.RawMessage, err error) {
	if len(d.Data.Sealed) > 0 {
		part, err := d.open(keys, d.Data.Sealed)
		if err != nil {
			return nil, nil, err
		}
		if private = part.Private; private == nil || part.AppData != nil {
			return nil, nil, damaged(d.Data.SnapshotID, "the sealed part in its document's data does not belong there", nil)
		}
	}
	if len(d.AppData.Sealed) > 0 {
		part, err := d.open(keys, d.AppData.Sealed)
		if err != nil {
			return nil, nil, err
		}
		if appData = part.AppData; appData == nil || part.Private != nil {
			return nil, nil, damaged(d.Data.SnapshotID, "the sealed part in its document's appData does not belong there", nil)
		}
	}
	return private, appData, nil
}

func (d *document) open(keys Keys, sealed []byte) (part sealedPart, err error) {
	id := d.Data.SnapshotID
	r, err := keys.open(bytes.NewReader(sealed), id, d.Data.Recipients)
	if fault.Is(err, fault.IdentityMissing) {
		return part, err
	}
	var plain []byte
	if err == nil {
		plain, err = io.ReadAll(r)
	}
	if err == nil {
		err = json.Unmarshal(plain, &part)
	}
	if err != nil || part.SnapshotID != id {
		return part, damaged(id, "the sealed part of its document cannot be read", err)
	}
	return part, nil
}

// hashBytes returns a hash of a document as bytes.
func hashBytes(hash string) (sum [32]byte) {
	_, _ = hex.Decode(sum[:], []byte(hash)) // check has verified its form
	return sum
}
