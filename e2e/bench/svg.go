package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// bar is one line of the picture: a median and the bounds of the middle half.
type bar struct {
	label string
	ours  bool
	value quartiles
}

// chart is a group of bars on one scale.
type chart struct {
	title string
	bars  []bar
}

// picture is a column of charts, each with its own scale.
type picture struct{ charts []chart }

// Dimensions of the picture, in SVG units.
const (
	pictureWidth = 820
	labelWidth   = 310
	valueWidth   = 110
	barHeight    = 18
	barStep      = 26
	titleHeight  = 40
	margin       = 16
)

// style serves light and dark backgrounds. The surrounding page decides which one.
const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px }
.ours { fill: #2563eb } .other { fill: #9aa4b2 } .spread { stroke: #1f2328; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .ours { fill: #60a5fa } .other { fill: #6b7686 } .spread { stroke: #e6edf3 }
}
</style>
`

// svg draws the picture. Bars begin at zero. The thin line over each bar is its middle
// half.
func (p picture) svg() string {
	var out strings.Builder
	y := margin
	for _, c := range p.charts {
		fmt.Fprintf(&out, `<text class="title" x="%d" y="%d">%s</text>`+"\n", margin, y+titleHeight/2, html.EscapeString(c.title))
		y += titleHeight
		longest := 0.0
		for _, b := range c.bars {
			longest = math.Max(longest, math.Max(b.value.median, b.value.high))
		}
		scale := float64(pictureWidth-2*margin-labelWidth-valueWidth) / math.Max(longest, 1e-9)
		for _, b := range c.bars {
			b.draw(&out, y, scale)
			y += barStep
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`+"\n", pictureWidth, y+margin) +
		style + out.String() + "</svg>\n"
}

func (b bar) draw(out *strings.Builder, y int, scale float64) {
	const x0 = margin + labelWidth
	class := "other"
	if b.ours {
		class = "ours"
	}
	middle := y + barHeight/2
	at := func(v float64) float64 { return x0 + v*scale }
	fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", x0-8, middle+4, html.EscapeString(b.label))
	fmt.Fprintf(out, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n", class, x0, y, b.value.median*scale, barHeight)
	fmt.Fprintf(out, `<line class="spread" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", at(b.value.low), middle, at(b.value.high), middle)
	fmt.Fprintf(out, `<text x="%.1f" y="%d">%s ms</text>`+"\n", at(math.Max(b.value.median, b.value.high))+8, middle+4, number(b.value.median))
}

// picture returns charts of all paths to a browser, those of Stasis first.
func (b *bench) picture() picture {
	var p picture
	add := func(title, kind string, others ...bar) {
		c := chart{title: title}
		for _, w := range scenarios() {
			if of := b.times[kind+w.name]; len(of) > 0 {
				c.bars = append(c.bars, bar{label: "Stasis: " + w.title, ours: true, value: spread(of)})
			}
		}
		c.bars = append(c.bars, others...)
		p.charts = append(p.charts, c)
	}
	add("To a page that answers CDP", "cdp/",
		bar{label: "bare Chrome on the profile", value: spread(b.times[bareOnProfile])},
		bar{label: "bare Chrome, empty", value: spread(b.times[bareEmpty])})
	var others []bar
	for _, r := range otherTools() {
		others = append(others, bar{label: strings.ReplaceAll(r.title, "`", ""), value: spread(b.times["login/"+r.name])})
	}
	add("To the logged-in page in the client", "login/", others...)
	return p
}
