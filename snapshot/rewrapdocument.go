package snapshot

import (
	"bytes"
	"io"

	"github.com/stasisd/stasis/fault"
)

// rewrap returns the document with its sealed parts sealed to the wanted recipients,
// or nil if nothing changes. storedSize 0 keeps the stored size.
func (d *document) rewrap(k Keys, retire []string, storedSize int64) ([]byte, error) {
	rewritten := *d
	to, err := k.newRecipients(d.Data.Recipients, retire)
	if err != nil {
		return nil, damaged(d.Data.SnapshotID, "its document names an invalid recipient", err)
	}
	rewritten.Data.Recipients = namesOf(to)
	same := sameNames(rewritten.Data.Recipients, d.Data.Recipients)
	if storedSize != 0 && storedSize != d.Data.Archive.StoredSize {
		rewritten.Data.Archive.StoredSize, same = storedSize, false
	}
	for _, part := range []*[]byte{&rewritten.Data.Sealed, &rewritten.AppData.Sealed} {
		if len(*part) == 0 {
			continue
		}
		sealed, err := k.rewrapSealed(*part, d.Data.SnapshotID, d.Data.Recipients, retire)
		if err != nil {
			return nil, err
		}
		if sealed != nil {
			*part, same = sealed, false
		}
	}
	if same {
		return nil, nil
	}
	body, err := rewritten.encode(k)
	return body, fault.Wrap(err, fault.Internal, "snapshot.rewrap", "")
}

// rewrapSealed rewraps a small age file in memory. It returns nil if no new header is
// needed.
func (k Keys) rewrapSealed(sealed []byte, id string, sealedTo, retire []string) ([]byte, error) {
	head, rest, err := readHeader(bytes.NewReader(sealed))
	if err != nil {
		return nil, damaged(id, "its sealed part has no age header", err)
	}
	newHead, _, err := k.rewrapHeader(head, id, sealedTo, retire)
	if err != nil || newHead == nil {
		return nil, err
	}
	payload, err := io.ReadAll(rest)
	return append(newHead, payload...), fault.Wrap(err, fault.Internal, "snapshot.rewrap", "")
}
