"""Methods with parameters for every class, or mixtures of softmaxes."""
