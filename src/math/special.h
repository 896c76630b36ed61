/* Special functions. All Local. */
#pragma once

/* The p-quantile of N(0, 1), 0 < p < 1, relative error about 1e-16: algorithm AS 241 (PPND16) of
 * Wichura (1988). */
double em_normal_quantile(double p);

/* The digamma function psi(x), the derivative of log Gamma, for x > 0. The error is about 1e-14
 * max(1, |psi(x)|). */
double em_digamma(double x);
