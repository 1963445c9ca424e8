# Vectors for PairedSlots: intercept of the least-squares fit with slot
# contrasts. Run as: Rscript slots.R > slots.json
set.seed(7)
one <- function(name, k, n, gap, scale) {
  ref <- c(); treat <- c(); rs <- c(); ts <- c()
  for (i in 1:n) {
    order <- ((0:(k - 1)) + (i - 1)) %% k
    if (runif(1) < 0.3 && i > n - 3) order <- rev(order)
    rslot <- order[1]; tslot <- order[2]
    shared <- rnorm(1)
    ref <- c(ref, scale * (10 + shared + 0.7 * rslot + rnorm(1)))
    treat <- c(treat, scale * (10 + gap + shared + 0.7 * tslot + rnorm(1)))
    rs <- c(rs, rslot); ts <- c(ts, tslot)
  }
  d <- treat - ref
  X <- sapply(1:(k - 1), function(j) (ts == j) - (rs == j))
  fit <- lm(d ~ X)
  co <- summary(fit)$coefficients[1, ]
  ci <- confint(fit, level = 0.95)[1, ]
  f <- function(x) paste0("[", paste(formatC(x, digits = 17, format = "g"), collapse = ","), "]")
  cat(sprintf('{"name":"%s","ref":%s,"treat":%s,"ref_slot":%s,"treat_slot":%s,"diff":%.17g,"t":%.17g,"df":%d,"p":%.17g,"low":%.17g,"high":%.17g}',
    name, f(ref), f(treat), f(rs), f(ts), co[1], co[3], fit$df.residual, co[4], ci[1], ci[2]))
}
cat("[\n")
sets <- list(list("two", 2, 20, 0, 1), list("two-odd", 2, 11, 0.5, 1), list("two-tiny", 2, 8, 1, 1e-12),
  list("two-huge", 2, 30, 2, 1e12), list("three", 3, 12, 0.4, 1), list("three-odd", 3, 17, 1, 1e-3), list("four", 4, 40, 0.2, 1))
for (i in seq_along(sets)) {
  do.call(one, sets[[i]])
  if (i < length(sets)) cat(",\n")
}
cat("\n]\n")
