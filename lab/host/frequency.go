package host

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// online are the CPUs that are switched on.
func (m Machine) online() ([]int, error) {
	s, err := m.text("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, err
	}
	cpus, ok := parseList(s)
	if !ok {
		return nil, errors.New("unreadable list of CPUs")
	}
	return cpus, nil
}

// governors are the distinct governors over all CPUs. One CPU that cannot be
// read leaves the whole unknown.
func (m Machine) governors() ([]string, error) {
	cpus, err := m.online()
	if err != nil {
		return nil, errors.New("no list of CPUs")
	}
	var all []string
	for _, c := range cpus {
		g, err := m.text("/sys/devices/system/cpu/cpu" + strconv.Itoa(c) + "/cpufreq/scaling_governor")
		if err != nil || g == "" {
			return nil, errors.New("no cpufreq on cpu" + strconv.Itoa(c))
		}
		if !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	slices.Sort(all)
	return all, nil
}

func (m Machine) governor() Reading {
	all, err := m.governors()
	if err != nil {
		return governor.unavailable(err.Error())
	}
	return governor.is(flag(len(all) == 1 && all[0] == "performance"), strings.Join(all, ", "))
}

// turbo looks at the driver of Intel first: where it is in charge, the general
// switch is absent.
func (m Machine) turbo() Reading {
	for _, s := range []struct{ file, on, off string }{
		{"intel_pstate/no_turbo", "0", "1"},
		{"cpufreq/boost", "1", "0"},
	} {
		switch v, err := m.text("/sys/devices/system/cpu/" + s.file); {
		case err != nil:
		case v == s.on:
			return turbo.is(1, s.file)
		case v == s.off:
			return turbo.is(0, s.file)
		}
	}
	return turbo.unavailable("no switch for it in intel_pstate or cpufreq")
}
