package s3store

import (
	"context"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/stasisd/stasis/snapshot"
)

// pageSize is the largest number of names that S3 returns at once.
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

// list reads names until no smaller one can follow.
//
// S3 orders folders by name including the slash. So "a-b/" comes before "a/", although
// "a" is less than "a-b". Within a page, objects come before folders.
func (s *Store) list(ctx context.Context, prefix string, limit int, after string) ([]string, error) {
	var names, keys []string
	var last string // the greatest key that may belong to the first names
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
		// All keys were seen that are less than a folder's key and less than the last key
		// of the previous page.
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

// lastBefore returns the greatest key of a folder whose name is less than name but whose
// key is greater. Such a folder's name is a prefix of name, followed in name by a
// character less than the slash.
func lastBefore(name string) string {
	if i := strings.IndexAny(name, "-."); i >= 0 {
		return name[:i] + "/"
	}
	return ""
}
