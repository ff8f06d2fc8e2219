"""What an iteration does: its operations, their time, the values that flow, the workload, the gradients."""
