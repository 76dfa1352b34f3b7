package s3store

// PrefixOf returns a store's prefix in its bucket.
func PrefixOf(s *Store) string { return s.opts.Prefix }

// IsTemporary reports whether a request should be retried after a failure.
var IsTemporary = isTemporary
