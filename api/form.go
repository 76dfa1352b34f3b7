package api

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/stasisd/stasis/fault"
)

// formFile reads the only file of a multipart form (RFC 7578). It reads the form to its end
// and fails at a second file, so that no file is dropped silently.
type formFile struct {
	form *multipart.Reader
	part *multipart.Part
}

// formFraming is how many bytes a form may have besides its file: boundaries, headers and
// fields. The limits of uploads apply to the file alone.
const formFraming = 16 << 10

func isForm(r *http.Request) bool {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // a malformed type is not a form
	return media == "multipart/form-data"
}

// framing returns how many bytes a body may have besides its file.
func framing(r *http.Request) int64 {
	if isForm(r) {
		return formFraming
	}
	return 0
}

// uploaded returns the content of a call that takes one file: the body, or the only file of
// a form with its name. most is the limit in bytes. The caller passes later errors to
// body.explain.
func uploaded(c *call, most int64) (body *upload, name string, content io.Reader, err error) {
	body = &upload{ReadCloser: http.MaxBytesReader(c.Response(), c.Request().Body, most+framing(c.Request()))}
	c.Request().Body = body
	if !isForm(c.Request()) {
		return body, "", body, nil
	}
	if name, content, err = oneFile(c.Request()); err != nil {
		return nil, "", nil, body.explain(err, most)
	}
	return body, name, content, nil
}

// oneFile finds the file of a multipart form.
func oneFile(r *http.Request) (name string, content io.Reader, err error) {
	form, err := r.MultipartReader()
	if err != nil {
		return "", nil, malformed(err)
	}
	part, err := nextFile(form)
	if err != nil {
		return "", nil, err
	}
	if part == nil {
		return "", nil, fault.New(fault.InvalidRequest, "api.files", "the form contains no file")
	}
	return part.FileName(), &formFile{form, part}, nil
}

// Read reads bytes of the file.
func (f *formFile) Read(p []byte) (int, error) {
	n, err := f.part.Read(p)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) {
		return n, malformed(err)
	}
	switch more, err := nextFile(f.form); {
	case err != nil:
		return n, err
	case more != nil:
		return n, fault.New(fault.InvalidRequest, "api.files", "the form contains more than one file")
	}
	return n, io.EOF
}

// nextFile skips a form's fields and returns its next file; nil at the end.
func nextFile(form *multipart.Reader) (*multipart.Part, error) {
	for {
		part, err := form.NextPart()
		if err == io.EOF { // a wrapped io.EOF means that the form was cut off
			return nil, nil
		}
		if err != nil {
			return nil, malformed(err)
		}
		if part.FileName() != "" {
			return part, nil
		}
	}
}

func malformed(err error) error {
	return fault.Wrap(err, fault.InvalidRequest, "api.files", "the form is malformed")
}
