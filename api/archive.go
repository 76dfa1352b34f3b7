package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/stasisd/stasis/fault"
)

// payloadHeader names the response header with the SHA-256 of a sealed archive's payload,
// which is everything after the age header.
const payloadHeader = "X-Stasis-Payload-SHA256"

// archiveQuery says how to send an archive: plain, sealed as it is stored, or sealed to the
// given recipients.
type archiveQuery struct {
	Sealed    *bool    `json:"sealed"`
	Recipient []string `json:"recipient"`
}

// archive streams a snapshot's archive and verifies it meanwhile. If the archive turns out
// to be damaged, the connection is aborted, so that no client takes a partial archive for a
// complete one.
func (h *exportHandler) archive(c *call) error {
	var q archiveQuery
	if err := c.query(&q); err != nil {
		return err
	}
	sealed := len(q.Recipient) > 0
	switch {
	case q.Sealed != nil && !*q.Sealed && sealed:
		return invalid("sealed", "must not be false with a recipient")
	case q.Sealed != nil && *q.Sealed:
		sealed = true
	}
	id, err := c.id("snapshot_id", fault.SnapshotNotFound)
	if err != nil {
		return err
	}
	if !sealed {
		r, err := h.exports.Archive(c.Request().Context(), c.caller, id)
		if err != nil {
			return err
		}
		return h.stream(c, r, id, ".tar.zst", "application/zstd")
	}
	r, err := h.exports.SealedArchive(c.Request().Context(), c.caller, id, q.Recipient)
	if err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set(payloadHeader, r.PayloadSHA256)
	header.Set("Content-Length", strconv.FormatInt(r.Size, 10))
	return h.stream(c, r, id, ".tar.zst.age", "application/octet-stream")
}

// stream sends a snapshot's file as an attachment and closes r.
func (h *exportHandler) stream(c *call, r io.ReadCloser, id, suffix, media string) error {
	defer r.Close() //nolint:errcheck // it was only read
	header := c.Response().Header()
	first := make([]byte, 64<<10)
	n, err := io.ReadFull(r, first) // an error in the first bytes can still be answered
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		header.Del("Content-Length")
		header.Del(payloadHeader)
		return err
	}
	header.Set("Content-Type", media)
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": id + suffix}))
	c.Response().WriteHeader(http.StatusOK)
	if _, err = c.Response().Write(first[:n]); err == nil {
		_, err = io.Copy(c.Response(), r)
	}
	if err != nil {
		h.log.Error("only a part of a snapshot's file was sent; the client must request the file again", "snapshot", id, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}
