package value

import "strings"

// showLimit is the most bytes of a value that an error message repeats.
const showLimit = 200

// Show is a value as text for an error message; long ones are cut.
func Show(v Value) string {
	if IsMissing(v) {
		return "missing"
	}
	s, cut := v.StringN(showLimit)
	if cut {
		return strings.ToValidUTF8(s, "") + "..."
	}
	return s
}
