package value

import (
	"regexp"
	"strings"
)

// Regexp is a compiled pattern.
type Regexp = regexp.Regexp

// CompileRegex compiles a pattern with MongoDB's options i, m, s, x and u. The
// engine is RE2: what of Perl's patterns it cannot do (look-around, back references,
// possessive quantifiers) is error code, never a different match.
func CompileRegex(pattern, options string, code int32) (*Regexp, error) {
	if strings.IndexByte(pattern, 0) >= 0 {
		return nil, Errorf(BadValue, "Regular expression cannot contain an embedded null byte")
	}
	flags := ""
	for _, c := range options {
		switch c {
		case 'i', 'm', 's':
			if !strings.ContainsRune(flags, c) {
				flags += string(c)
			}
		case 'x':
			pattern = stripExtended(pattern)
		case 'u':
		default:
			return nil, Errorf(51108, "invalid flag in regex options: %c", c)
		}
	}
	pattern = perlEnds(pattern, strings.Contains(flags, "m") || strings.Contains(pattern, "(?m"))
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, Errorf(code, "Regular expression is invalid: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re, nil
}

// perlEnds rewrites the ends of text that Perl's patterns know and RE2 does not:
// \Z, and $ without option m, also stand before a final newline.
func perlEnds(p string, multiline bool) string {
	if !strings.ContainsAny(p, `\$`) {
		return p
	}
	var b strings.Builder
	inClass := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '\\' && i+1 < len(p):
			if p[i+1] == 'Z' && !inClass {
				b.WriteString(`(?:\n?\z)`)
			} else {
				b.WriteString(p[i : i+2])
			}
			i++
			continue
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case c == '$' && !inClass && !multiline:
			b.WriteString(`(?:\n?\z)`)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// stripExtended takes out what option x makes a comment: white space and # to the
// end of the line, outside of brackets.
func stripExtended(p string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '\\' && i+1 < len(p):
			b.WriteString(p[i : i+2])
			i++
			continue
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case !inClass && strings.IndexByte(" \t\r\n\v\f", c) >= 0:
			continue
		case !inClass && c == '#':
			end := strings.IndexByte(p[i:], '\n')
			if end < 0 {
				return b.String()
			}
			i += end
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
