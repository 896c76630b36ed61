/* The normal distribution. All Local. */
#ifndef EM_MATH_NORMAL_H
#define EM_MATH_NORMAL_H

/* The quantile function of N(0, 1) (Wichura 1988, algorithm AS 241, PPND16): relative error about
 * 1e-16; infinite at 0 and 1, NaN outside. */
double em_normal_quantile(double p);

#endif
