// Improper: b has no prior, and no datum knows of it.
data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real a;
  real b;
}
model {
  y ~ normal(a, 1);
}
