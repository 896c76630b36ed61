// Neal's funnel, centred.
data {
  int<lower=1> D;
}
parameters {
  real v;
  vector[D] x;
}
model {
  v ~ normal(0, 3);
  x ~ normal(0, exp(v / 2));
}
