package main

import (
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completions are the scripts for shells. Each asks __complete what can follow the words before
// the cursor, and offers files where that prints nothing.
//
//go:embed completion
var completions embed.FS

// completionCmd prints the script for a shell.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script.
func (c *completionCmd) Run() error {
	script, err := completions.ReadFile("completion/stasis." + c.Shell)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(script)
	return err
}

// completeCmd prints what the word at the cursor can be: in each line a word, a tab and what
// it means. Only the scripts of completionCmd call it.
type completeCmd struct {
	Words []string `arg:"" optional:"" help:"The words after stasis; the last one is incomplete."`
}

// Run prints the words.
func (c *completeCmd) Run(app *kong.Kong) error {
	for _, w := range complete(app.Model.Node, joinWords(c.Words)) {
		if _, err := fmt.Println(w.text + "\t" + w.help); err != nil {
			return err
		}
	}
	return nil
}

// joinWords joins what bash splits: --engine=shell is three words there, and so is a:b.
func joinWords(words []string) (joined []string) {
	join := false
	for _, w := range words {
		separator := w != "" && strings.Trim(w, "=:") == ""
		if (join || separator) && len(joined) > 0 {
			joined[len(joined)-1] += w
		} else {
			joined = append(joined, w)
		}
		join = separator
	}
	return joined
}

// completion is a word that the command line can have, and what it means.
type completion struct{ text, help string }

// complete returns what the last word can be. It returns none where the word is free text.
func complete(root *kong.Node, words []string) []completion {
	if len(words) == 0 {
		return nil
	}
	before, last := words[:len(words)-1], words[len(words)-1]
	verb, arguments := root, 0
	var open *kong.Flag // its value comes next
	for _, w := range before {
		switch {
		case open != nil:
			open = nil
		case w == "--":
			return nil
		case strings.HasPrefix(w, "-"):
			if flag := flagOf(verb, w); flag != nil && !flag.IsBool() {
				open = flag
			}
		default:
			if child := childOf(verb, w); child != nil {
				verb = child
			} else {
				arguments++
			}
		}
	}
	name, _, assigned := strings.Cut(last, "=")
	var all []completion
	switch {
	case open != nil:
		all = values(open.Value, "")
	case strings.HasPrefix(last, "-") && assigned:
		if flag := flagOf(verb, name); flag != nil {
			all = values(flag.Value, name+"=")
		}
	case strings.HasPrefix(last, "-"):
		all = flags(verb)
	default:
		all = next(verb, arguments)
	}
	return slices.DeleteFunc(all, func(c completion) bool { return !strings.HasPrefix(c.text, last) })
}

// next returns the verbs or arguments that can follow a verb with so many arguments. A verb
// that has neither has flags.
func next(verb *kong.Node, arguments int) (all []completion) {
	switch {
	case arguments < len(verb.Positional):
		return values(verb.Positional[arguments], "")
	case arguments > 0:
		return nil
	case len(verb.Children) == 0:
		return flags(verb)
	}
	for _, child := range verb.Children {
		if !child.Hidden {
			all = append(all, completion{child.Name, firstSentence(child.Help)})
		}
	}
	return all
}

// values returns the values of a flag or an argument that has a list of them.
func values(v *kong.Value, prefix string) (all []completion) {
	if v.Enum == "" {
		return nil
	}
	for _, value := range v.EnumSlice() {
		all = append(all, completion{prefix + value, firstSentence(v.Help)})
	}
	return all
}

// flags returns the flags that a verb accepts.
func flags(verb *kong.Node) (all []completion) {
	for _, flag := range acceptedFlags(verb) {
		if !flag.Hidden {
			all = append(all, completion{"--" + flag.Name, firstSentence(flag.Help)})
		}
	}
	return all
}

// acceptedFlags returns the flags of a verb, of the verb that it stands for, and of those
// above it.
func acceptedFlags(verb *kong.Node) (all []*kong.Flag) {
	if verb.DefaultCmd != nil {
		all = append(all, verb.DefaultCmd.Flags...)
	}
	for ; verb != nil; verb = verb.Parent {
		all = append(all, verb.Flags...)
	}
	return all
}

// flagOf returns the flag of a word such as --engine; nil if the word has its value too, or
// names no flag.
func flagOf(verb *kong.Node, word string) *kong.Flag {
	for _, flag := range acceptedFlags(verb) {
		if "--"+flag.Name == word {
			return flag
		}
	}
	return nil
}

func childOf(verb *kong.Node, name string) *kong.Node {
	for _, child := range verb.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// firstSentence returns the first sentence of a help text, without its full stop.
func firstSentence(help string) string {
	sentence, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(sentence, ".")
}
