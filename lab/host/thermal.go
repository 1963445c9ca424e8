package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// thermal is the hottest zone. Zones answer with an error while their device
// sleeps, and with absurd values where no sensor is wired, so the others speak
// for them.
func (m Machine) thermal() Reading {
	const coldest, hottest = -50, 200
	const dir = "/sys/class/thermal/"
	entries, _ := os.ReadDir(m.path(dir))
	best, of, mute, zones := 0.0, "", 0, 0
	for _, e := range entries {
		// Cooling devices stand in the same folder.
		if !strings.HasPrefix(e.Name(), "thermal_zone") {
			continue
		}
		zones++
		zone := dir + e.Name()
		s, err := m.text(zone + "/temp")
		n, bad := strconv.ParseInt(s, 10, 32)
		if t := float64(n) / 1000; err != nil || bad != nil || t < coldest || t > hottest {
			mute++
		} else if of == "" || t > best {
			if of, err = m.text(zone + "/type"); err != nil || of == "" {
				of = e.Name()
			}
			best = t
		}
	}
	switch {
	case zones == 0:
		return thermal.unavailable("no thermal zones")
	case of == "":
		return thermal.unavailable("no thermal zone can be read")
	case mute > 0:
		of = fmt.Sprintf("%s; %d of %d zones cannot be read", of, mute, zones)
	}
	return thermal.is(best, of)
}
