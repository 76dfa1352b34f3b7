package resolver

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/stasisd/stasis/egress"
)

// maxDatagram is the most bytes of an answer over UDP (RFC 1035 section 4.2.1).
const maxDatagram = 512

// Answer returns the answer to a query, at most limit bytes long; nil if it is no query, or after
// Close. ctx bounds how long it takes.
func (r *Resolver) Answer(ctx context.Context, query []byte, limit int) []byte {
	if !r.begin() {
		return nil
	}
	defer r.answers.Done()
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil || head.Response {
		return nil
	}
	reply := dnsmessage.Header{ID: head.ID, Response: true, OpCode: head.OpCode, RecursionDesired: head.RecursionDesired, RecursionAvailable: true}
	questions, err := p.AllQuestions()
	switch {
	case err != nil || len(questions) != 1:
		reply.RCode = dnsmessage.RCodeFormatError
		return pack(reply, nil, nil, limit)
	case head.OpCode != 0 || questions[0].Class != dnsmessage.ClassINET:
		reply.RCode = dnsmessage.RCodeNotImplemented
		return pack(reply, questions, nil, limit)
	}
	q := questions[0]
	sent := strings.TrimSuffix(q.Name.String(), ".")
	printed := printable(sent)
	name := strings.ToLower(printed)
	network := map[dnsmessage.Type]string{dnsmessage.TypeA: "ip4", dnsmessage.TypeAAAA: "ip6"}[q.Type]
	if printed != sent || !r.c.Limits.AllowsName(name) {
		// Chrome asks for both families, and for records of the type HTTPS. One report is enough.
		if network != "ip6" {
			r.refuse(egress.Refusal{Protocol: "dns", Host: name})
		}
		reply.RCode = dnsmessage.RCodeNameError
		return pack(reply, questions, nil, limit)
	}
	if network == "" {
		return pack(reply, questions, nil, limit)
	}
	found, err := r.addresses(ctx, network, name)
	if err != nil {
		reply.RCode = dnsmessage.RCodeServerFailure
		found = nil
	}
	return pack(reply, questions, found, limit)
}

// printable returns a name with its bytes that are no visible ASCII as \DDD (RFC 1035 section
// 5.1). No host has such a name.
func printable(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c > ' ' && c < 0x7f {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "\\%03d", c)
		}
	}
	return b.String()
}

// pack makes a message. One that would be too long has no addresses and says so.
func pack(h dnsmessage.Header, questions []dnsmessage.Question, found []netip.Addr, limit int) []byte {
	m := dnsmessage.Message{Header: h, Questions: questions}
	for _, ip := range found {
		record := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: questions[0].Name, Class: dnsmessage.ClassINET, TTL: uint32(ttl.Seconds())}}
		if ip.Is4() {
			record.Body = &dnsmessage.AResource{A: ip.As4()}
		} else {
			record.Body = &dnsmessage.AAAAResource{AAAA: ip.As16()}
		}
		m.Answers = append(m.Answers, record)
	}
	raw, err := m.Pack()
	if err == nil && len(raw) > limit {
		m.Answers, m.Truncated = nil, true
		raw, err = m.Pack()
	}
	if err != nil {
		return nil
	}
	return raw
}
