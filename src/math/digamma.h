/* The derivative of log Gamma. */
#ifndef EM_MATH_DIGAMMA_H
#define EM_MATH_DIGAMMA_H

/* psi(x), x > 0, to about 1e-14 of its size or of one. Local. */
double em_digamma(double x);

#endif
