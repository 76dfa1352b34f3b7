package portable

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stasisd/stasis/state"
)

// httpOnly begins the line of a cookie that scripts may not read. Other tools take the
// line for a comment; curl and Chrome's exporters know it.
const httpOnly = "#HttpOnly_"

// maxCookies is the largest number of cookies in an imported cookies.txt. A line of a few
// bytes becomes a struct of some hundred. Chrome itself keeps a few thousand cookies.
const maxCookies = 100_000

// Netscape writes a document's cookies as a cookies.txt in curl's dialect. The
// tab-separated fields are domain, whether subdomains get it (tail match), path, secure,
// expiry in seconds (0 for a session cookie), name and value.
func Netscape(doc state.Document) ([]byte, []Loss) {
	var lost losses
	out := bytes.NewBufferString("# Netscape HTTP Cookie File\n")
	for _, c := range doc.Cookies {
		if why := notForNetscape(c); why != "" {
			lost.add(state.ComponentCookies, c.Origin(), 1, why)
			continue
		}
		if c.HTTPOnly {
			out.WriteString(httpOnly)
		}
		var expires int64
		if !c.Session {
			expires = max(int64(math.Ceil(c.Expires)), 1) // 0 would mean a session cookie
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", c.Domain, upper(strings.HasPrefix(c.Domain, ".")), c.Path,
			upper(c.Secure), expires, c.Name, c.Value)
		if c.SameSite != "" {
			lost.add(sameSite, "", 1, "the format has no SameSite")
		}
		loseAttributes(c, &lost)
	}
	lost.storage(doc)
	return out.Bytes(), lost.list()
}

// notForNetscape returns the reason why a cookie cannot be written, or "".
func notForNetscape(c state.Cookie) string {
	switch {
	case c.Partition != nil || c.Opaque:
		return "the format has no partitioned cookies"
	case c.Name == "":
		return "the format has no cookies without a name"
	case strings.ContainsAny(c.Domain+c.Path+c.Name+c.Value, "\t\r\n\x00"):
		return "it contains a tab, a line break or a null character"
	}
	return ""
}

func upper(truth bool) string { return strings.ToUpper(strconv.FormatBool(truth)) }

// ReadNetscape reads a cookies.txt.
func ReadNetscape(data []byte) (state.Document, []Loss, error) {
	var lost losses
	doc := document()
	if !utf8.Valid(data) {
		return doc, nil, invalid("the file is not UTF-8")
	}
	number := 0
	for raw := range bytes.Lines(data) {
		number++
		line := string(raw)
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		rest, hidden := strings.CutPrefix(line, httpOnly)
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") && !hidden {
			continue
		}
		if len(doc.Cookies) == maxCookies {
			return doc, nil, invalid("cookies: line %d is beyond the limit; a file can have at most %d cookies", number, maxCookies)
		}
		c, err := fromLine(rest)
		if err != nil {
			return doc, nil, invalid("line %d: %s", number, err)
		}
		c.HTTPOnly = hidden
		doc.Cookies = append(doc.Cookies, c)
	}
	doc.Cookies = normalise(doc.Cookies, &lost)
	return doc, lost.list(), nil
}

func fromLine(line string) (c state.Cookie, err error) {
	fields := strings.SplitN(line, "\t", 8)
	if len(fields) == 6 { // curl omits the last tab if there is no value
		fields = append(fields, "")
	}
	if len(fields) != 7 {
		return c, fmt.Errorf("must have 7 tab-separated fields (6 if the value is empty), not %d", 1+strings.Count(line, "\t"))
	}
	tail, err := truth("field 2 (subdomains)", fields[1])
	if err != nil {
		return c, err
	}
	if c.Secure, err = truth("field 4 (secure)", fields[3]); err != nil {
		return c, err
	}
	expires, err := strconv.ParseInt(fields[4], 10, 64)
	if err != nil || expires < 0 || expires > maxExpires {
		return c, fmt.Errorf("field 5 (expiry) must be seconds since 1970, or 0")
	}
	if !isDomain(fields[0]) {
		return c, fmt.Errorf("field 1 (domain) must be a host name")
	}
	if !strings.HasPrefix(fields[2], "/") {
		return c, fmt.Errorf("field 3 (path) must begin with a slash")
	}
	if fields[5] == "" {
		return c, fmt.Errorf("field 6 (name) must not be empty")
	}
	c.Domain = strings.TrimPrefix(fields[0], ".")
	if tail {
		c.Domain = "." + c.Domain
	}
	c.Path, c.Name, c.Value = fields[2], fields[5], fields[6]
	if c.Expires, c.Session = float64(expires), expires == 0; c.Session {
		c.Expires = -1
	}
	return c, nil
}

func truth(field, text string) (bool, error) {
	switch strings.ToUpper(text) {
	case "TRUE":
		return true, nil
	case "FALSE":
		return false, nil
	}
	return false, fmt.Errorf("%s must be TRUE or FALSE", field)
}
