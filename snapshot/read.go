package snapshot

import (
	"context"
	"errors"
	"io"

	"github.com/stasisd/stasis/fault"
)

// maxPage is the largest number of IDs in a page of a location's list.
const maxPage = 1000

// readObject returns an object's bytes, at most one more than limit.
func readObject(ctx context.Context, s Store, key Key, limit int) (body []byte, err error) {
	r, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	body, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	return body, fault.Wrap(err, fault.StoreFailed, "snapshot.read", "")
}

// listIDs is [Vault.List]. It skips names in the folder that no document has; they do not
// count towards the page.
func listIDs(ctx context.Context, s Store, loc Location, limit int, startAfter string) (ids []string, next string, err error) {
	folder, err := loc.HistoryFolder()
	if err != nil {
		return nil, "", err
	}
	after := ""
	if startAfter != "" {
		if err := loc.checkID(startAfter); err != nil {
			return nil, "", err
		}
		after = documentPrefix + startAfter + documentSuffix
	}
	if limit < 1 || limit > maxPage {
		limit = 100
	}
	for {
		names, err := s.List(ctx, folder, limit+1, after)
		if err != nil {
			return nil, "", err
		}
		for _, name := range names {
			after = name
			id, ok := loc.documentID(name)
			if !ok {
				continue
			}
			if len(ids) == limit {
				return ids, ids[limit-1], nil
			}
			ids = append(ids, id)
		}
		if len(names) <= limit {
			return ids, "", nil
		}
	}
}

// readWhole reads a document; it returns nil if the document is missing.
func readWhole(ctx context.Context, s Store, key Key) ([]byte, error) {
	body, err := readObject(ctx, s, key, MaxAgentDocument)
	if fault.Is(err, fault.SnapshotNotFound) {
		return nil, nil
	}
	return body, err
}
