"""What is wrong with a design: comparison, wrong models, causes, reports."""
