// Two probabilities of which only the product is identified.
data {
  int<lower=1> N;
  int<lower=0> k;
}
parameters {
  real<lower=0, upper=1> p1;
  real<lower=0, upper=1> p2;
}
model {
  k ~ binomial(N, p1 * p2);
}
