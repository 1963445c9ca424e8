package report

import (
	"fmt"
	"strings"
)

// environmentLines are the machine and the build, as far as they are known.
func environmentLines(s *Source) [][2]string {
	e := s.Env
	if e == nil {
		return nil
	}
	var lines [][2]string
	add := func(name string, parts ...string) {
		if v := strings.Join(compact(parts...), ", "); v != "" {
			lines = append(lines, [2]string{name, v})
		}
	}
	number := func(format string, x float64) string {
		if x == 0 {
			return ""
		}
		return fmt.Sprintf(format, num(x))
	}
	add("system", e.OS+"/"+e.Arch, e.Distribution, e.Kernel)
	add("CPU", e.CPUModel, number("%s online", float64(e.CPUs)), number("%s MHz at most", e.MaxMHz))
	if e.MemoryBytes > 0 {
		add("memory", withUnit(float64(e.MemoryBytes), "B"))
	}
	add("scratch", e.ScratchFS, e.ScratchDisk)
	add("container", e.Container)
	add("tool", e.ToolVersion, e.GoVersion)
	return lines
}
