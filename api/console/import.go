package console

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stasisd/stasis/client"
)

const (
	// maxPaste is the limit of pasted state, in bytes. Files have the limit of the API.
	maxPaste = maxForm
	// maxField is the limit of the other fields of the form.
	maxField = 4 << 10
)

// importForm is the form of an import, as the person filled it in, without the file.
type importForm struct {
	Values url.Values
	Once   string // makes a second click harmless
	Error  *client.Error
}

// newImport shows the form. The query fills it in.
func newImport(v *visit) error { return showImport(v, v.r.URL.Query(), nil) }

func showImport(v *visit, values url.Values, failed *client.Error) error {
	status := http.StatusOK
	if failed != nil {
		status = failed.Status
	}
	values.Del("text") // it may have logins, and no page shows them
	v.write(status, "import", page{Title: "Import", Section: "snapshots", Data: importForm{values, rand.Text(), failed}, Actions: []action{
		{Label: "Import a Playwright state as a user's default", Call: call{method: http.MethodPost, file: true,
			path: "/v1/snapshots?format=playwright&save_as_default=true" + strings.Replace(queryOf("user_id", values.Get("user_id")), "?", "&", 1)}},
	}})
	return nil
}

// importSnapshot imports a file, or what the person pasted, and shows the snapshot. If that
// fails, it shows the form again. The file is passed on as it arrives.
func importSnapshot(v *visit) error {
	values, file, err := readImport(v.r)
	var made struct {
		Snapshot client.Snapshot
		Default  *client.DefaultOutcome
	}
	if err == nil {
		headers := []string{"Content-Type", "application/octet-stream"}
		if once := values.Get("once"); once != "" {
			headers = append(headers, "Idempotency-Key", once)
		}
		err = v.api.stream("/v1/snapshots"+importQuery(values), file, -1, &made, headers...)
	}
	var failed *client.Error
	switch {
	case errors.As(err, &failed) && failed.Status != http.StatusUnauthorized:
		return showImport(v, values, failed)
	case err != nil:
		return err
	}
	text := "The import is saved as a snapshot."
	switch {
	case made.Default != nil && made.Default.Moved:
		text = fmt.Sprintf("The import is saved, and is the default of %s now.", made.Snapshot.UserID)
	case made.Default != nil:
		text = "The import is saved as a snapshot. It did not become the default: " + made.Default.Reason + "."
	}
	return v.done(text+" Contents lists what it has, and what was left out.", "snapshots", made.Snapshot.ID)
}

// importQuery returns the query of the import that the form describes.
func importQuery(values url.Values) string {
	pairs := []string{"format", values.Get("format"), "user_id", strings.TrimSpace(values.Get("user_id")), "label", values.Get("label")}
	if values.Get("format") == "datadir" {
		pairs = append(pairs, "profile", strings.TrimSpace(values.Get("profile")))
	}
	if values.Get("default") != "" {
		pairs = append(pairs, "save_as_default", "true", "default_conflict", "overwrite")
	}
	return queryOf(pairs...)
}

// readImport reads the fields of the form and returns the file, which it does not read. The
// form's file comes after all fields. Without a file, file is the field text.
func readImport(r *http.Request) (values url.Values, file io.Reader, err error) {
	values = url.Values{}
	form, err := r.MultipartReader()
	if err != nil {
		return values, nil, badImport("the form cannot be read: " + err.Error())
	}
	for {
		part, err := form.NextPart()
		if err == io.EOF { // a wrapped io.EOF means that the form was cut off
			break
		}
		if err != nil {
			return values, nil, badImport("the form cannot be read: " + err.Error())
		}
		if part.FileName() != "" {
			file = part
			break
		}
		if err := readField(values, part); err != nil {
			return values, nil, err
		}
	}
	switch text := values.Get("text"); {
	case strings.TrimSpace(text) == "" && file == nil:
		return values, nil, badImport("choose a file, or paste its text")
	case strings.TrimSpace(text) == "":
		return values, file, nil
	case file != nil:
		return values, nil, badImport("choose a file or paste its text, not both")
	default:
		return values, strings.NewReader(text), nil
	}
}

// importFields returns the names of the form's fields. Others are not kept: a form may have any
// number of them.
func importFields() []string {
	return []string{"once", "user_id", "format", "label", "profile", "default", "text"}
}

// readField adds a field of the form to values.
func readField(values url.Values, part *multipart.Part) error {
	name, most := part.FormName(), int64(maxField)
	if name == "text" {
		most = maxPaste
	}
	data, err := io.ReadAll(io.LimitReader(part, most+1))
	switch {
	case err != nil:
		return badImport("the form cannot be read: " + err.Error())
	case int64(len(data)) > most && name == "text":
		return &client.Error{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Message: "the pasted text is larger than " + size(most) + "; save it as a file and choose that"}
	case int64(len(data)) > most:
		return badImport("the form cannot be read: the field " + name + " is too long")
	}
	if slices.Contains(importFields(), name) {
		values.Set(name, string(data))
	}
	return nil
}

func badImport(message string) error {
	return &client.Error{Status: http.StatusBadRequest, Code: "invalid_request", Message: message}
}
