// Improper: only the sum of two parameters has a law.
parameters {
  real x1;
  real x2;
}
model {
  x1 + x2 ~ normal(0, 1);
}
