package extension

import "context"

// Matches reports whether the files in a folder are those of an extension with this ID
// and hash. It ignores the index of an extension's rules that Chrome writes there. The
// error is ctx's error.
func Matches(ctx context.Context, folder, id, sha256 string) (bool, error) {
	if !IsID(id) {
		return false, nil // an ID from a document could contain a path
	}
	is, err := Inspect(ctx, folder)
	return err == nil && is.ID == id && is.SHA256 == sha256, ctx.Err()
}
