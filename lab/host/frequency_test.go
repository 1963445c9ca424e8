package host

import "testing"

const cpuDir = "sys/devices/system/cpu/"

func TestGovernor(t *testing.T) {
	of := func(files map[string]string) Reading { return tree(t, files).governor() }
	two := func(a, b string) map[string]string {
		return map[string]string{cpuDir + "online": "0,2\n", cpuDir + "cpu0/cpufreq/scaling_governor": a, cpuDir + "cpu2/cpufreq/scaling_governor": b}
	}
	wantValue(t, of(two("performance\n", "performance\n")), 1)
	r := of(two("performance\n", "powersave\n"))
	wantValue(t, r, 0)
	if r.Detail != "performance, powersave" {
		t.Error(r.Detail)
	}
	wantUnavailable(t, of(nil))
	wantUnavailable(t, of(map[string]string{cpuDir + "online": "0-1\n"}))
	wantUnavailable(t, of(two("performance\n", "")))
	for _, garbage := range []string{"", "x", "1-", "3-1", "0-99999999999", "0,,1", "-1"} {
		f := two("performance\n", "performance\n")
		f[cpuDir+"online"] = garbage
		wantUnavailable(t, of(f))
	}
	f := two("performance\n", "performance\n")
	f[cpuDir+"online"] = "0-2\n"
	wantUnavailable(t, of(f))
}

func TestTurbo(t *testing.T) {
	of := func(noTurbo, boost string) Reading {
		f := map[string]string{}
		if noTurbo != "" {
			f[cpuDir+"intel_pstate/no_turbo"] = noTurbo
		}
		if boost != "" {
			f[cpuDir+"cpufreq/boost"] = boost
		}
		return tree(t, f).turbo()
	}
	wantValue(t, of("0\n", ""), 1)
	wantValue(t, of("1\n", ""), 0)
	wantValue(t, of("", "1\n"), 1)
	wantValue(t, of("", "0\n"), 0)
	wantValue(t, of("?", "0\n"), 0)
	wantUnavailable(t, of("", ""))
	wantUnavailable(t, of("2", "yes"))
}

func TestThermal(t *testing.T) {
	zone := "sys/class/thermal/thermal_zone"
	r := tree(t, map[string]string{zone + "0/temp": "41000\n", zone + "0/type": "acpitz\n", zone + "1/temp": "63500\n", zone + "1/type": "x86_pkg_temp\n", zone + "2/temp": "-274000\n"}).thermal()
	wantValue(t, r, 63.5)
	if r.Detail != "x86_pkg_temp; 1 of 3 zones cannot be read" {
		t.Error(r.Detail)
	}
	wantValue(t, tree(t, map[string]string{zone + "0/temp": "-5000"}).thermal(), -5)
	wantUnavailable(t, tree(t).thermal())
	wantUnavailable(t, tree(t, map[string]string{zone + "0/type": "acpitz"}).thermal())
	wantUnavailable(t, tree(t, map[string]string{zone + "0/temp": "hot", zone + "1/temp": "999999999999", zone + "2/temp": ""}).thermal())
}
