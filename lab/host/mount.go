package host

import (
	"errors"
	"slices"
	"strings"
)

// mount is a line of /proc/self/mountinfo.
type mount struct {
	device  string // major:minor
	root    string
	point   string
	options []string
	fs      string
	source  string
	super   []string
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func (m Machine) mounts() (all []mount, err error) {
	b, err := m.whole("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		dash := slices.Index(f, "-")
		if dash < 6 || len(f) < dash+4 {
			continue
		}
		all = append(all, mount{
			device: f[2], root: unescape.Replace(f[3]), point: unescape.Replace(f[4]), options: strings.Split(f[5], ","),
			fs: f[dash+1], source: unescape.Replace(f[dash+2]), super: strings.Split(f[dash+3], ","),
		})
	}
	if len(all) == 0 {
		return nil, errors.New("no mounts in mountinfo")
	}
	return all, nil
}

// mountOf is the mount that a clean absolute path is on. Of two mounts on one
// point the later covers the earlier.
func mountOf(all []mount, path string) (best mount, ok bool) {
	for _, m := range all {
		if below := m.point == "/" || path == m.point || strings.HasPrefix(path, m.point+"/"); !below {
			continue
		}
		if !ok || len(m.point) >= len(best.point) {
			best, ok = m, true
		}
	}
	return best, ok
}
