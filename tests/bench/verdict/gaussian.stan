// Normal, each coordinate correlated with the next, on scales of their own.
data {
  int<lower=2> D;
  real<lower=-1, upper=1> rho;
  vector<lower=0>[D] scale;
}
parameters {
  vector[D] x;
}
model {
  vector[D] z = x ./ scale;
  z[1] ~ normal(0, 1);
  z[2:D] ~ normal(rho * z[1:(D - 1)], sqrt(1 - square(rho)));
}
