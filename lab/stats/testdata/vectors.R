# Reference results from R, for vectors.py, which calls this script:
#   Rscript vectors.R < requests > answers
# A request is one line "key;function;argument;...", an argument one number or
# several with commas between; the answer is the line "key;number,...".

numbers <- function(s) as.numeric(strsplit(s, ",", fixed = TRUE)[[1]])

# power.t.test solves to a fixed small tolerance only when told to.
solve <- function(..., type) {
  power.t.test(..., sd = 1, type = type, strict = TRUE, tol = 1e-13)
}

functions <- list(
  welch = function(ref, treat, level) {
    t <- t.test(treat, ref, conf.level = level)
    c(t$statistic, t$parameter, t$p.value, t$conf.int)
  },
  paired = function(ref, treat, level) {
    t <- t.test(treat, ref, paired = TRUE, conf.level = level)
    c(t$statistic, t$parameter, t$p.value, t$conf.int)
  },
  ranks = function(ref, treat, exact) {
    w <- wilcox.test(treat, ref, exact = exact == 1, correct = TRUE)
    c(w$statistic, w$p.value)
  },
  # Only the exact interval: the other one is found by a root search.
  shift = function(ref, treat, level) {
    w <- suppressWarnings(wilcox.test(treat, ref, exact = TRUE, conf.int = TRUE, conf.level = level))
    c(w$estimate, w$conf.int)
  },
  quantiles = function(x, q) quantile(x, q, type = 7, names = FALSE),
  holm = function(p) p.adjust(p, "holm"),
  tail = function(t, df) 2 * pt(-abs(t), df),
  quantile = function(alpha, df) qt(alpha / 2, df, lower.tail = FALSE),
  welchpower = function(d, n, alpha) solve(n = n, delta = d, sig.level = alpha, type = "two.sample")$power,
  pairedpower = function(d, n, alpha) solve(n = n, delta = d, sig.level = alpha, type = "paired")$power,
  welchrounds = function(d, power, alpha) solve(power = power, delta = d, sig.level = alpha, type = "two.sample")$n,
  pairedrounds = function(d, power, alpha) solve(power = power, delta = d, sig.level = alpha, type = "paired")$n,
  drift = function(x) {
    i <- seq_along(x)
    summary(lm(x ~ i))$coefficients["i", c(1, 4)]
  }
)

input <- file("stdin")
for (line in readLines(input)) {
  fields <- strsplit(line, ";", fixed = TRUE)[[1]]
  answer <- do.call(functions[[fields[2]]], lapply(fields[-(1:2)], numbers))
  cat(fields[1], ";", paste(sprintf("%.17g", answer), collapse = ","), "\n", sep = "")
}
close(input)
