package s3store

import (
	"context"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/stasisd/stasis/snapshot"
)

// pageSize is how many names S3 gives at once, at most.
const pageSize = 1000

// List implements [snapshot.Store].
func (s *Store) List(ctx context.Context, folder snapshot.Key, limit int, after string) ([]string, error) {
	if err := check(ctx, "list", folder); err != nil {
		return nil, err
	}
	var names []string
	err := s.try(ctx, func() (err error) {
		names, err = s.list(ctx, s.name(folder.String())+"/", limit, after)
		return err
	})
	return names, s.failure("list", err)
}

// list reads names until no smaller one can come.
//
// S3 orders folders by their name with the slash, so "a-b/" comes before "a/"
// though "a" is less than "a-b"; and within a page, objects come before
// folders.
func (s *Store) list(ctx context.Context, prefix string, limit int, after string) ([]string, error) {
	var names, keys []string
	var last string // the greatest key that may belong among the first names
	for item := range s.core.ListObjectsIter(ctx, s.opts.Bucket, minio.ListObjectsOptions{
		Prefix: prefix, StartAfter: prefix + after, MaxKeys: pageSize,
	}) {
		if item.Err != nil {
			return nil, item.Err
		}
		key := strings.TrimPrefix(item.Key, prefix)
		keys = append(keys, key)
		if name := strings.TrimSuffix(key, "/"); name > after {
			if len(names) < limit {
				last = max(last, key, lastBefore(name))
			}
			names = append(names, name)
		}
		// All keys were seen that are less than a folder's, and than the one a
		// page ago.
		seen := ""
		if strings.HasSuffix(key, "/") {
			seen = key
		} else if len(keys) > pageSize {
			seen = keys[len(keys)-1-pageSize]
		}
		if len(names) >= limit && seen >= last {
			break
		}
	}
	slices.Sort(names)
	return names[:min(limit, len(names))], ctx.Err()
}

// lastBefore is the greatest key of a folder whose name is less than this one,
// and whose key is greater: one of those that begin the name where a character
// less than the slash follows.
func lastBefore(name string) string {
	if i := strings.IndexAny(name, "-."); i >= 0 {
		return name[:i] + "/"
	}
	return ""
}
