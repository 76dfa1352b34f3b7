package s3store

// PrefixOf is where a store is in its bucket.
func PrefixOf(s *Store) string { return s.opts.Prefix }

// Passes reports whether a failure is worth another try.
var Passes = passes
