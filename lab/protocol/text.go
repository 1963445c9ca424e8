package protocol

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// bang is a value that YAML takes for a tag, such as a negated condition.
var bang = regexp.MustCompile(`: +![A-Za-z(]`)

// unreadable finds what no text editor shows, which the parser would replace
// or keep in silence.
func unreadable(lines []string) (at place, what string) {
	for i, l := range lines {
		if !utf8.ValidString(l) {
			valid := strings.ToValidUTF8(l, "\x00")
			return place{i + 1, utf8.RuneCountInString(valid[:strings.IndexByte(valid, 0)]) + 1}, "not UTF-8 text; save the file as UTF-8"
		}
		for j, c := range []rune(l) {
			if isControl(c) {
				return place{i + 1, j + 1}, fmt.Sprintf("control character %U; remove it", c)
			}
		}
	}
	return place{}, ""
}

// isControl says that the character steers a terminal or ends a C string. Tab
// and line feed are text.
func isControl(c rune) bool {
	return c < 0x20 && c != '\t' && c != '\n' || c >= 0x7f && c < 0xa0
}

var innerTab = regexp.MustCompile(`[^ \t\n][ \t]*\t[ \t]*[^ \t\n]`)

// lossy finds tabs with which the library reads something else than what stands
// there: it drops one inside plain text, and takes one at the beginning of a
// block for indentation, after which it drops lines that look like comments.
func lossy(tokens token.Tokens) (at place, what string) {
	var before *token.Token
	for _, t := range tokens {
		if t.Type == token.CommentType {
			continue
		}
		block := before != nil && (before.Type == token.LiteralType || before.Type == token.FoldedType)
		header := before
		before = t
		if t.Type != token.StringType {
			continue
		}
		switch {
		case block && strings.HasPrefix(strings.TrimLeft(t.Value, "\n "), "\t"):
			return tokenPlace(header), "the block of text begins with a tab; begin it with another character"
		case !block && innerTab.MatchString(t.Origin):
			return tokenPlace(t), "a tab in plain text would be lost; write a space, or put the text in quotes"
		}
	}
	return place{}, ""
}

// tooDeep looks at the tokens, because the parser itself recurses.
func tooDeep(tokens token.Tokens) (at place, deep bool) {
	flow := 0
	var blocks []int // columns at which the open blocks began
	for i, t := range tokens {
		column := 0
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(flow-1, 0)
		case token.SequenceEntryType, token.MappingKeyType:
			column = t.Position.Column
		case token.MappingValueType:
			if i > 0 {
				column = tokens[i-1].Position.Column
			}
		}
		if column > 0 && flow == 0 {
			for len(blocks) > 0 && blocks[len(blocks)-1] > column {
				blocks = blocks[:len(blocks)-1]
			}
			if len(blocks) == 0 || blocks[len(blocks)-1] < column {
				blocks = append(blocks, column)
			}
		}
		if flow+len(blocks) > maxDepth {
			return tokenPlace(t), true
		}
	}
	return place{}, false
}
