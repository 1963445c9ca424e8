#!/usr/bin/env python3
"""Writes vectors.json, the reference results that the tests of package stats
compare with. Needs SciPy, and Rscript for vectors.R beside this file:

    python3 vectors.py > vectors.json

Each figure is computed twice by independent software (R against SciPy, or R
against exact rational arithmetic), and the script stops when they disagree.
"""

import json
import math
import os
import platform
import subprocess
import sys
from fractions import Fraction

import numpy as np
import scipy
from scipy import optimize, special, stats

# SciPy's noncentral t warns of branches whose result it then discards.
np.seterr(all="ignore")

rng = np.random.default_rng(20240229)


def agree(name, a, b, rel):
    for x, y in zip(np.atleast_1d(a), np.atleast_1d(b), strict=True):
        if not math.isclose(x, y, rel_tol=rel, abs_tol=0):
            sys.exit(f"{name}: {x!r} and {y!r} disagree")


# ---- data sets

sets = []


def add(name, ref, treat, level=0.95):
    sets.append((name, [float(x) for x in ref], [float(x) for x in treat], level))


def digits(xs, n=7):
    return [float(f"%.{n}g" % x) for x in xs]


def normal(n, mean=0.0, sd=1.0):
    return digits(rng.normal(mean, sd, n))


def whole(xs):
    return [float(round(x)) for x in xs]


def with_sample_moments(n, mean, sd):
    x = rng.normal(0, 1, n)
    return digits((x - x.mean()) / x.std(ddof=1) * sd + mean, 12)


add("normal n=30", normal(30), normal(30, 0.5))
add("normal n=100", normal(100, 10, 2), normal(100, 10.4, 2))
add("normal n=100 no effect", normal(100, 10, 2), normal(100, 10, 2))
add("normal n=10 level 0.99", normal(10), normal(10, 1), 0.99)
add("normal n=12 level 0.9", normal(12), normal(12, -1), 0.9)
add("normal n=20 level 0.5", normal(20), normal(20), 0.5)
add("normal n=25 level 0.999999", normal(25), normal(25, 2), 0.999999)
add("n=2", [1.5, 2.25], [3.75, 4.125])
add("n=2 tied", [1, 2], [2, 3])
add("n=2 interleaved", [1, 3], [2, 5])
add("n=3", normal(3, 5), normal(3, 7))
add("n=3 level 0.9", [1.1, 2.3, 0.7], [4.2, 3.9, 5.5], 0.9)
add("n=4", normal(4), normal(4, 1))
add("n=5 separated", [1, 2, 3, 4, 5], [11, 12.5, 13, 14, 17])
add("2 against 5", normal(2), normal(5, 1))
add("5 against 30", normal(5, 3), normal(30, 4, 3))
add("30 against 100", normal(30, 100, 5), normal(100, 102, 15))
add("100 against 7", normal(100), normal(7, 0.8, 0.1))
add("lognormal n=30", digits(rng.lognormal(0, 1, 30)), digits(rng.lognormal(0.5, 1, 30)))
add("lognormal n=100", digits(rng.lognormal(2, 1.5, 100)), digits(rng.lognormal(2.3, 1.5, 100)))
add("exponential 20 against 25", digits(rng.exponential(3, 20)), digits(rng.exponential(5, 25)))
add("pareto n=40", digits(rng.pareto(1.5, 40)), digits(rng.pareto(1.5, 40) * 1.3))
add("cauchy n=30", digits(rng.standard_cauchy(30)), digits(rng.standard_cauchy(30)))
add("uniform n=8", digits(rng.uniform(0, 1, 8)), digits(rng.uniform(0.2, 1.2, 8)))
add("bimodal n=40", normal(20, -5) + normal(20, 5), normal(20, -4) + normal(20, 6))
add("ties n=10", whole(rng.uniform(0, 6, 10)), whole(rng.uniform(1, 7, 10)))
add("ties n=30", whole(rng.normal(10, 2, 30)), whole(rng.normal(11, 2, 30)))
add("ties n=100", rng.poisson(4, 100), rng.poisson(5, 100))
add("ties binary n=30", rng.integers(0, 2, 30), rng.integers(0, 2, 30))
add("ties all but one", [1] * 9 + [2], [1] * 10)
add("ties within one arm", [1, 1, 2, 3.5], [4, 5, 6.5, 7])
add("same values in another order", [3, 1, 4, 1, 5, 9], [9, 5, 1, 4, 1, 3])
add("zero variance in reference n=10", [7] * 10, normal(10, 7.5))
add("zero variance in treatment n=30", normal(30, 0.3), [0.1] * 30)
add("zero variance in reference n=2", [1, 1], [2, 3])
add("huge n=30", digits(rng.normal(5e12, 1e12, 30)), digits(rng.normal(5.5e12, 1e12, 30)))
add("huge n=100 against 80", digits(rng.lognormal(0, 1, 100) * 1e12), digits(rng.lognormal(0, 1, 80) * 1e12))
add("tiny n=30", digits(rng.normal(5e-12, 1e-12, 30)), digits(rng.normal(4e-12, 2e-12, 30)))
add("tiny n=2", [1e-12, 3e-12], [2e-12, 9e-12])
add("tiny skewed n=15", digits(rng.exponential(1e-12, 15)), digits(rng.exponential(1e-12, 15)))
add("large offset n=30", normal(30, 1e5, 1), normal(30, 1e5 + 1, 1))
add("extreme separation n=30", normal(30, 0), normal(30, 25))
add("extreme separation n=100", normal(100, 0), normal(100, 50))
add("extreme negative separation n=50", normal(50, 40), normal(50, 0))
add("unequal variances n=30", normal(30, 0, 0.001), normal(30, 0.5, 1000))
add("report A n=30", with_sample_moments(30, 4560.6, 136.3), with_sample_moments(30, 18791.9, 792.4))
add("report B n=30", with_sample_moments(30, 5799.6, 191.3), with_sample_moments(30, 15486.1, 835.0))
add("negative n=20", normal(20, -50, 4), normal(20, -53, 4))
add("largest exact n=50", normal(50), normal(50, 0.3))
add("smallest approximate n=51", normal(51), normal(50, 0.3))
add("n=49", normal(49), normal(49, -0.3))
shared = rng.normal(0, 20, 24)
add("rounds with shared noise n=24", digits(100 + shared + rng.normal(0, 1, 24)), digits(101 + shared + rng.normal(0, 1, 24)))
add("rounds with opposite noise n=24", digits(100 + shared), digits(101 - shared))
add("nanoseconds n=48", whole(rng.lognormal(14, 0.3, 48)), whole(rng.lognormal(14.1, 0.3, 48)))
add("descending n=15", list(range(15, 0, -1)), [x + 0.25 for x in range(1, 16)])

# ---- requests to R

requests = []


def text(x):
    return ",".join(repr(float(v)) for v in np.atleast_1d(x))


def ask(key, function, *arguments):
    requests.append(";".join([key, function, *map(text, arguments)]))


QS = [0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 1]


def exact(ref, treat):
    pooled = ref + treat
    return len(set(pooled)) == len(pooled) and max(len(ref), len(treat)) <= 50


def varying(ref, treat):
    """Whether the samples are paired and their differences vary, without which
    R refuses the paired test."""
    return len(ref) == len(treat) and len({t - r for r, t in zip(ref, treat)}) > 1


for name, ref, treat, level in sets:
    ask(name + "/welch", "welch", ref, treat, level)
    if varying(ref, treat):
        ask(name + "/paired", "paired", ref, treat, level)
    ask(name + "/ranks", "ranks", ref, treat, exact(ref, treat))
    if exact(ref, treat):
        ask(name + "/shift", "shift", ref, treat, level)
    ask(name + "/quantiles", "quantiles", treat, QS)
    if len(set(np.diff(treat))) > 1:  # not all on one line
        ask(name + "/drift", "drift", treat)

holms = [
    [0.01, 0.02, 0.03, 0.04, 0.05],
    [0.04, 0.001, 0.9, 0.03, 0.03, 1e-40, 0],
    [0.5, 0.6, 1],
    [0.02],
    digits(rng.uniform(0, 0.1, 20)),
]
for i, ps in enumerate(holms):
    ask(f"holm/{i}", "holm", ps)

tails = [(t, df) for df in [1, 1.7, 2, 5, 10, 30.72, 58, 198, 1e3, 1e4, 1e5, 1.9e5, 2.1e5, 1e6, 1e9]
         for t in [0, 1e-9, 0.01, 0.9999, 1.0001, 1.96, 5, 13, 30, 96.95, 1e6] if df < 1e3 or t < 35]
for i, (t, df) in enumerate(tails):
    ask(f"tail/{i}", "tail", t, df)
criticals = [(alpha, df) for df in [1, 1.7, 2, 5, 30.72, 58, 1e3, 1e5, 1.9e5, 2.1e5, 1e6, 1e8]
             for alpha in [0.9, 0.5, 0.1, 0.05, 0.01, 1e-3, 1e-6, 1e-9]]
for i, (alpha, df) in enumerate(criticals):
    ask(f"critical/{i}", "quantile", alpha, df)

powers = [(d, n, alpha) for d in [0, 0.05, 0.2, 0.5, 0.8, 1.5, 4] for n in [2, 3, 5, 20, 27, 30, 100, 1000]
          for alpha in [0.05, 0.001]]
plans = [(d, power, alpha) for d in [0.1, 0.2, 0.5, 0.8, 1, 1.5, 2.5] for power in [0.5, 0.8, 0.9, 0.99]
         for alpha in [0.05, 0.01]]
for kind in ["welch", "paired"]:
    for i, p in enumerate(powers):
        ask(f"{kind}power/{i}", kind + "power", *p)
    for i, p in enumerate(plans):
        # Below two values R has no degrees of freedom left to search.
        if p[0] <= 1:
            ask(f"{kind}rounds/{i}", kind + "rounds", *p)

here = os.path.dirname(os.path.abspath(__file__))
answers = {}
for line in subprocess.run(["Rscript", os.path.join(here, "vectors.R")], input="\n".join(requests) + "\n",
                           stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
    key, values = line.split(";")
    answers[key] = [float(v) for v in values.split(",")]

# ---- the same figures again, and the file


def moments(xs):
    exact_values = [Fraction(x) for x in xs]
    mean = sum(exact_values) / len(xs)
    return mean, sum((x - mean) ** 2 for x in exact_values) / (len(xs) - 1)


def root(x):
    """Square root of a Fraction, without the range of a float in between."""
    shift = 2 * (180 + max(0, x.denominator.bit_length() - x.numerator.bit_length()) // 2)
    return float(Fraction(math.isqrt(x.numerator * 2**shift // x.denominator), 2 ** (shift // 2)))


def critical(alpha, df):
    """SciPy's t quantile is good to some nine digits only; its tail is better,
    and Newton's method on that gives the rest."""
    t = stats.t.isf(alpha / 2, df)
    for _ in range(3):
        t += (2 * special.stdtr(df, -t) - alpha) / (2 * stats.t.pdf(t, df))
    return t


def test(name, diff, se, df, level):
    """The t test from exact moments, checked against R's."""
    t = diff / se
    half = critical(1 - level, df) * se
    mine = [t, df, 2 * special.stdtr(df, -abs(t)), diff - half, diff + half]
    agree(name, mine, answers[name], 1e-9)
    return dict(zip(["diff", "t", "df", "p", "lower", "upper"], [diff] + mine))


def correction(df):
    return math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)


def shift(name, ref, treat, level):
    diffs = np.sort(np.subtract.outer(treat, ref).ravel())
    n, m = len(ref), len(treat)
    estimate = float(np.median(diffs))
    if exact(ref, treat):
        theirs = answers[name + "/shift"]
        agree(name + "/shift", estimate, theirs[0], 1e-12)
        lower, upper = theirs[1:]
    else:
        rank = math.ceil(n * m / 2 - 0.5 - stats.norm.isf((1 - level) / 2) * math.sqrt(n * m * (n + m + 1) / 12))
        rank = max(1, rank)
        lower, upper = float(diffs[rank - 1]), float(diffs[n * m - rank])
    return {"estimate": estimate, "lower": lower, "upper": upper, "level": min(level, 1 - 2 / math.comb(n + m, n))}


out_sets = []
for name, ref, treat, level in sets:
    (mr, vr), (mt, vt) = moments(ref), moments(treat)
    n, m = len(ref), len(treat)
    diff, er, et = float(mt - mr), vr / n, vt / m
    df = float((er + et) ** 2 / (er**2 / (n - 1) + et**2 / (m - 1)))
    out = {"name": name, "level": level, "ref": ref, "treat": treat}
    out["moments"] = {"mean": float(mt), "sd": root(vt)}
    out["welch"] = test(name + "/welch", diff, root(er + et), df, level)

    pooled = root(((n - 1) * vr + (m - 1) * vt) / (n + m - 2))
    out["d"] = diff / pooled
    out["g"] = diff / pooled * correction(n + m - 2)
    if varying(ref, treat):
        differences = [t - r for r, t in zip(ref, treat)]
        md, vd = moments(differences)
        out["paired"] = test(name + "/paired", float(md), root(vd / n), n - 1, level)
        out["dz"] = float(md) / root(vd)

    method = "exact" if exact(ref, treat) else "asymptotic"
    w = stats.mannwhitneyu(treat, ref, method=method, use_continuity=True)
    agree(name + "/ranks", [w.statistic, w.pvalue], answers[name + "/ranks"], 1e-9)
    out["ranks"] = {"u": w.statistic, "p": w.pvalue, "exact": exact(ref, treat)}
    out["shift"] = shift(name, ref, treat, level)

    agree(name + "/quantiles", np.quantile(treat, QS), answers[name + "/quantiles"], 1e-12)
    out["quantiles"] = answers[name + "/quantiles"]
    if name + "/drift" in answers:
        fit = stats.linregress(range(m), treat)
        agree(name + "/drift", [fit.slope, fit.pvalue], answers[name + "/drift"], 1e-9)
        out["drift"] = dict(zip(["slope", "p"], answers[name + "/drift"]))
    out_sets.append(out)


def power(kind, d, n, alpha):
    df, ncp = (2 * (n - 1), d * math.sqrt(n / 2)) if kind == "welch" else (n - 1, d * math.sqrt(n))
    t = critical(alpha, df)
    p = stats.nct.sf(t, df, ncp) + stats.nct.cdf(-t, df, ncp) if d else alpha
    if math.isnan(p):
        sys.exit(f"no power for {kind, d, n, alpha}")
    return p


out_powers, out_plans, out_detectable = [], [], []
for kind in ["welch", "paired"]:
    for i, (d, n, alpha) in enumerate(powers):
        p = answers[f"{kind}power/{i}"][0]
        agree(f"{kind}power/{i} {d, n, alpha}", power(kind, d, n, alpha), p, 1e-7)
        out_powers.append({"kind": kind, "d": d, "n": n, "alpha": alpha, "power": p})
    for i, (d, target, alpha) in enumerate(plans):
        n = 2
        while power(kind, d, n, alpha) < target:
            n += 1
        if f"{kind}rounds/{i}" in answers:
            r = answers[f"{kind}rounds/{i}"][0]
            if math.ceil(r) != n:
                sys.exit(f"{kind}rounds/{i}: R has {r}, SciPy {n}")
        out_plans.append({"kind": kind, "d": d, "power": target, "alpha": alpha, "n": n})
    for n, target, alpha in [(2, 0.8, 0.05), (3, 0.8, 0.05), (5, 0.9, 0.05), (10, 0.8, 0.01),
                             (20, 0.8, 0.05), (30, 0.9, 0.05), (100, 0.99, 0.001), (1000, 0.8, 0.05)]:
        d = optimize.brentq(lambda d: power(kind, d, n, alpha) - target, 1e-6, 60, xtol=1e-14, rtol=1e-14)
        out_detectable.append({"kind": kind, "n": n, "power": target, "alpha": alpha, "d": d})

for i, (t, df) in enumerate(tails):
    # SciPy's tail is the weaker one at very many degrees of freedom.
    if df < 1e5:
        agree(f"tail/{t}/{df}", 2 * special.stdtr(df, -t), answers[f"tail/{i}"], 1e-9)

sections = {
    "comment": "Generated by vectors.py; do not edit.",
    "versions": {"python": platform.python_version(), "scipy": scipy.__version__,
                 "r": subprocess.run(["Rscript", "-e", "cat(format(getRversion()))"],
                                     capture_output=True, text=True, check=True).stdout},
    "qs": QS,
    "sets": out_sets,
    "holm": [{"p": ps, "adjusted": answers[f"holm/{i}"]} for i, ps in enumerate(holms)],
    "tails": [{"t": t, "df": df, "p": answers[f"tail/{i}"][0]} for i, (t, df) in enumerate(tails)],
    "criticals": [{"alpha": a, "df": df, "t": answers[f"critical/{i}"][0]} for i, (a, df) in enumerate(criticals)],
    "powers": out_powers,
    "plans": out_plans,
    "detectable": out_detectable,
}

print("{")
for i, (key, value) in enumerate(sections.items()):
    end = "" if i == len(sections) - 1 else ","
    if isinstance(value, list) and isinstance(value[0], dict):
        rows = ",\n".join(json.dumps(row, allow_nan=False) for row in value)
        print(f"{json.dumps(key)}: [\n{rows}\n]{end}")
    else:
        print(f"{json.dumps(key)}: {json.dumps(value)}{end}")
print("}")
