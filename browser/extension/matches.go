package extension

import "context"

// Matches reports whether the files in a folder are those of an extension with this
// ID and hash. Chrome writes its index of an extension's rules there, which does
// not count. The error is that of ctx.
func Matches(ctx context.Context, folder, id, sha256 string) (bool, error) {
	if !IsID(id) {
		return false, nil // an ID that somebody wrote into a document is no path
	}
	is, err := Inspect(ctx, folder)
	return err == nil && is.ID == id && is.SHA256 == sha256, ctx.Err()
}
