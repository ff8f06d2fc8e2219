"""Times where there is no simulator: analytic models, labelled as such."""
